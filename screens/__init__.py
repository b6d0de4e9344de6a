"""The screens of the workbench, one package each; what they share is in `widgets`."""
