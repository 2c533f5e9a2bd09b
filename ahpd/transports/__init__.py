"""Transports: whole messages in, frames out, over WebSocket, stdio or a Unix socket."""
