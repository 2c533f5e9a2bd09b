"""Agents: the port through which the host drives one, and its adapters."""
