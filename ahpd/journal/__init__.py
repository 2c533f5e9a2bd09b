"""The journal: where envelopes are kept so that a killed process loses none.

`port` says what the host needs of one. `sqlite` keeps it in a file; `memory` forgets.
"""
