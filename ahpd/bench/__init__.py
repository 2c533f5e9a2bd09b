"""``ahpd bench``: a host as a process of its own, clients as others, and a baseline in each run.

Nothing is measured from inside: a host is started as anybody would start it, with its journal on a
disk, and clients talk to it over loopback. Every figure stands beside that of the plainest program
which does the same work (`naive`), measured in turns with it and read by the same readers, so that
a busy machine slows both alike.

| module | for |
|---|---|
| `processes` | programs that are started, and what they use of the machine |
| `sockets` | a blocking WebSocket, and frames |
| `daemon` | a host, and somebody who talks to it |
| `readers` | a program that reads many connections with as little Python as possible |
| `naive` | a program that is what a host is compared with |
| `streaming`, `latency`, `footprint`, `soak` | what is measured |
| `measures` | the table of it |
| `report` | figures, aims, and how they are shown |

It reads ``/proc``, so it is for Linux.
"""
