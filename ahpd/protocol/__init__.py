"""The Agent Host Protocol 1.0.0 in Python: wire types, codec, JSON-RPC, versions, URIs.

Nothing here does I/O or knows of trio. Types are grouped by channel: `root`, `session` with
`session_actions`, `chat` with `chat_actions`, `terminal`, `changeset`, `annotations`, `resources`,
`automation`, `canvas`; what they share is in `common`, `messages`, `tools`, `inputs` and
`customizations`; `connection` has the handshake and the envelope, `actions` and `methods` the
tables. `model` says how types are written, `codec` how they are decoded, `strict` how a capture
of frames is judged.
"""

from ahpd.protocol.actions import ACTIONS, ActionInfo, StateAction, action_type
from ahpd.protocol.codec import DecodeError, decode, decoder, encode
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.methods import CLIENT_METHODS, HOST_NOTIFICATIONS, HOST_REQUESTS, METHODS, Method
from ahpd.protocol.model import Unknown, Wire
from ahpd.protocol.persistent import Seq, Text
from ahpd.protocol.uris import ROOT, URI, ChannelKind
from ahpd.protocol.versions import choose, negotiate

__all__ = [
    "ACTIONS",
    "CLIENT_METHODS",
    "HOST_NOTIFICATIONS",
    "HOST_REQUESTS",
    "METHODS",
    "ROOT",
    "URI",
    "ActionInfo",
    "ChannelKind",
    "DecodeError",
    "ErrorCode",
    "Method",
    "ProtocolError",
    "Seq",
    "StateAction",
    "Text",
    "Unknown",
    "Wire",
    "action_type",
    "choose",
    "decode",
    "decoder",
    "encode",
    "negotiate",
]
