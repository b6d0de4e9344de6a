from backend.catalog.server_metadata import *
