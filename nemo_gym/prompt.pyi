from backend.datasets.prompt import *
