"""The canvas channel (R-21.2)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.canvas import CanvasState, CanvasStateChangedAction
from ahpd.reducers.change import Handlers, dispatch, same


def _state(canvas: CanvasState, action: CanvasStateChangedAction) -> CanvasState:
    """Replaced whole, so that a URL left out means there is none."""
    return canvas if same(canvas, action.canvas) else action.canvas


HANDLERS: Handlers[CanvasState] = {CanvasStateChangedAction: _state}


def reduce(state: CanvasState, action: StateAction) -> CanvasState:
    """The canvas after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
