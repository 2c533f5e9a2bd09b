"""The exit codes of ``ahpd``, all of them; the README has the same table."""

from __future__ import annotations

from typing import Final

#: Done, and what was checked is right.
OK: Final = 0
#: What was checked has faults.
FAULTS: Final = 1
#: The command line is wrong, or what it names cannot be read.
USAGE: Final = 2
#: No daemon is running, or it does not answer.
NO_DAEMON: Final = 3
#: The host refused what it was asked for.
REFUSED: Final = 4
#: The agent failed.
FAILED: Final = 5
#: The turn was cancelled.
CANCELLED: Final = 6
#: Another daemon holds the state folder.
ALREADY_RUNNING: Final = 7
#: The host could not start to take clients: the port is taken, or a file cannot be written.
CANNOT_SERVE: Final = 8
#: The daemon did not stop when it was asked to, and was killed.
KILLED: Final = 9
#: The journal is damaged, or no journal of this version's.
JOURNAL_UNUSABLE: Final = 10
#: The peer on standard input sent what no host can go on from: a message over the limit.
PEER_BROKE: Final = 65
#: A part of the host that it cannot be without failed too often.
HOST_FAILED: Final = 70
#: The output could not be written: its disk is full, for example.
OUTPUT_LOST: Final = 74
#: Ctrl-C.
INTERRUPTED: Final = 130
#: Whoever read the output went away, as ``head`` does.
PIPE_CLOSED: Final = 141
