from backend.datasets.benchmarks import *
