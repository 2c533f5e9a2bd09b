"""Looking inside a running host, and steering one actor of it while all others go on.

`service` speaks with the command line over the socket `look.sock` of the state folder, in JSON-RPC,
a message a line. `overview` is the whole tree at a glance; `console` is one person attached to one
actor. What is not used costs nothing: all of it hangs on `supervisors.sys`.
"""
