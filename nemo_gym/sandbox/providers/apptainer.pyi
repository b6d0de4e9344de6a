from backend.servers.sandbox.providers.apptainer import *
