"""``ahpd attach``: the console of somebody who is attached to one actor of the daemon.

`link` is the connection, `commands` the table of what can be typed, `answers` how that is answered
in words, `console` the loop, `typing` where lines come from: a terminal, or a pipe.
"""
