"""A client of the Agent Host Protocol: optimistic replicas of channels, and the way back.

`store` keeps one channel as confirmed state and operations that wait for their echo; `replica`
keeps all channels of one client and their numbers; `resend` says what becomes of an operation
that a lost connection left without an answer. These three are pure. `rpc` carries JSON-RPC over a
transport, `link` makes connections and comes back, and `client` is what a program uses.
"""

from ahpd.client.backoff import Backoff
from ahpd.client.client import ChannelGone, Client, open_client
from ahpd.client.link import Connect, Observer, Status
from ahpd.client.operation import Operation
from ahpd.client.outcome import Outcome
from ahpd.client.replica import Channel
from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout
from ahpd.client.store import OptimisticStore, Pending, Receipt

__all__ = [
    "Backoff",
    "Channel",
    "ChannelGone",
    "Client",
    "Connect",
    "ConnectionLost",
    "Observer",
    "Operation",
    "OptimisticStore",
    "Outcome",
    "Peer",
    "Pending",
    "Receipt",
    "RequestTimeout",
    "Status",
    "open_client",
]
