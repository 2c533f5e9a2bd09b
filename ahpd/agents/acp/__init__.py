"""Any agent that speaks the Agent Client Protocol (ACP, version 1) over its stdio, as a backend."""
