from backend.servers.token_id_capture import *
