"""The Responses-API and Chat-Completions shapes, and the conversion between them. Knows no server and no file."""
