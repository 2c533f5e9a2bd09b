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
