"""Configuration: YAML with line numbers, layers, merge with origins, directives, resolution, validation findings."""
