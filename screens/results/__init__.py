"""The run list: which runs there are below a folder, how they stand, and what one of them did."""
