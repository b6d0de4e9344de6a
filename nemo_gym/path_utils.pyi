from backend.io.result_paths import *
