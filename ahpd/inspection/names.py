"""What the command line and the host call things when they speak of what is inside.

Requests, with their params and results, and notifications; both are JSON-RPC, a message a line.
Nothing here imports anything, so that ``ahpd ps`` starts at once.
"""

from __future__ import annotations

from typing import Final

#: ``{"under": path}`` -> see `ahpd.inspection.overview`.
PS: Final = "ps"

#: A notification of the command line's, ``{"id": id}``: that request is not to be gone on with.
CANCEL: Final = "cancel"
#: The code of the error that answers it.
CANCELLED: Final = -32800

#: ``{"path": name}`` -> everything there is to see of one actor (`ahpd.inspection.looks`).
INSPECT: Final = "inspect"
#: ``{"path": name}`` -> see `ahpd.inspection.console`, whose methods the connection has from then
#: on.
ATTACH: Final = "attach"

# Notifications to whoever is attached.
#: ``{"text"}``: what their code or debugger printed.
SAID: Final = "said"
#: ``{"prompt"}``: their debugger waits for a line.
ASKS: Final = "asks"
#: ``{"text"}``: something to know.
NOTE: Final = "note"
#: What the actor did, see `ahpd.inspection.looks.happening`.
TRACE: Final = "trace"
#: ``{"number", "path", "matches", "seq"}``: what they watch has changed.
WATCHED: Final = "watched"
#: ``{"count"}``: so many notifications were left out, because they read too slowly.
LOST: Final = "lost"
