"""The Config screen: what will run, and who said so."""
