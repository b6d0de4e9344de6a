from backend.datasets.skills import *
