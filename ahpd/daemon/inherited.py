"""What a daemon got from whoever started it and does not pass on.

A shell starts what runs in the background, or under nohup, with signals ignored, and what is
ignored stays so over exec: in every terminal Ctrl-C would do nothing. What is caught does not.
"""

from __future__ import annotations

import signal
from types import FrameType

#: What a terminal sends to the programs in it, and what ends them.
_OF_TERMINALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)


def catch_what_is_ignored() -> None:
    """Have programs that are started from now on get their signals. For the main thread.

    Here they go on to mean nothing.
    """
    for each in _OF_TERMINALS:
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, _nothing)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass
