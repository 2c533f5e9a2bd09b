"""The composition root: the only place that builds a whole host and runs it.

`config` is what a person may set and `config_file` reads it; `launching` puts the flags over it.
`hosting` builds the host and `running` runs it: for `serving`, the daemon, whose `listeners` let
clients in and whose `state` folder is its own, or for one peer `over_stdio`. `control` is what the
command line asks a running daemon, `detached` starts and stops one. Only `ahpd.cli` imports any.
"""
