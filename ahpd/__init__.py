"""ahpd: a host for coding-agent sessions that speaks the Agent Host Protocol."""

__version__ = "0.1.0"
