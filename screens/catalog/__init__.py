"""The Catalog screen."""
