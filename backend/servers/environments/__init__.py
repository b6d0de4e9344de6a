"""In which Python environment a server runs: this program's own, a prebuilt one, or one from the store."""
