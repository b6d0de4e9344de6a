"""Which components exist, and how a name becomes a configuration file."""
