"""The ground floor: JSON lines, files, paths, redaction, event logs. Knows nothing of configuration, servers or commands."""
