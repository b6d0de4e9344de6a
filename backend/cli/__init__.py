"""The headless face: `gym` and `ng`. Parses words into a request, runs one operation, renders its events."""
