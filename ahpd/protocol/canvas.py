"""The canvas channel, experimental in 1.0.0 (RULES 21)."""

from __future__ import annotations

from typing import Literal

from ahpd.protocol.model import Wire
from ahpd.protocol.uris import URI


class CanvasReference(Wire):
    """A canvas channel that belongs to a chat."""

    resource: URI


class CanvasState(Wire):
    """What a canvas shows now."""

    instance_id: str
    extension_id: str
    extension_name: str | None = None
    canvas_id: str
    title: str | None = None
    status: str | None = None
    url: URI | None = None


class CanvasStateChangedAction(Wire):
    """Replaces the presentation whole (R-21.2)."""

    type: Literal["canvas/stateChanged"] = "canvas/stateChanged"
    canvas: CanvasState
