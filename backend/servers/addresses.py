"""How a host and a port become a URL."""


def server_url(host: str, port: int) -> str:
    """`http://host:port`; an IPv6 address gets its brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
