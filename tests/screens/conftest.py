"""A still terminal for every test of the workbench."""

from tests.workbench import still_terminal

__all__ = ["still_terminal"]
