"""Terminals: processes on pseudo-terminals, and what their output says."""
