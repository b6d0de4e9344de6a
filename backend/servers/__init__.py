"""Running servers: base classes, HTTP between them, the supervisor that starts and stops them, and their status."""
