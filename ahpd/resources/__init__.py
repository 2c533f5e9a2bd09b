"""Files of the host's machine: the port that the host asks, and the adapters behind it."""
