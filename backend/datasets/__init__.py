"""Data rows before a run: prompt templates, and the preparation of declared datasets."""
