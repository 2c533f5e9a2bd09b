"""The composition root: the only place that builds a whole host and runs it.

`config` is what a person may set, `config_file` reads it, `state` is the folder that one daemon
owns, `hosting` builds the host, `listeners` lets clients in, `control` is what the command line
asks a running daemon, `running` ties them together. Only `ahpd.cli` imports any of it.
"""
