"""What all screens share: lists and text of any length, panes and their states, the gates for untrusted text, the key table."""
