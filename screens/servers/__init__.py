"""The Servers screen."""
