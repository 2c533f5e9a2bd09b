"""The actors of the host, one module each; see each module for what its actor does."""
