from backend.package_info import *
