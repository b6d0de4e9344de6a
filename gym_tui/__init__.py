"""The workbench, `gym tui`: puts the screens together."""
