"""`Host`: the tables that the actors of one host share, and that outlive each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from actors.absent import AbsentAgent
from actors.clients import Clients
from actors.clock import Clock
from actors.dormant import Dormant
from actors.grants import Grants
from actors.ledger import Entry, Ledger
from actors.otlp import Otlp
from actors.recording import Recorder
from actors.replay import ReplayWindow
from actors.share import Share
from actors.subscriptions import Listener, Subscriptions
from actors.tally import Tally
from ahpd.agents.port import Agent, PastConversation
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.model import Wire
from ahpd.protocol.session import SessionSummary
from ahpd.protocol.uris import ROOT, URI
from ahpd.resources.port import Resources, Watched
from ahpd.terminals.port import Terminals

#: Neither limit may be set below the one or above the other (bytes).
LEAST_BYTES, MOST_BYTES = 1 << 20, 1 << 40


class Settings(Struct, eq=False):
    """What can be set; times in seconds, sizes in bytes."""

    #: What may wait for a client that does not read (R-1.40); settable while the host runs.
    client_queue_bytes: int = 16 << 20
    #: How long a client that went away keeps its place in sessions (R-10.38).
    grace: float = 30.0
    #: How long a cancelled agent may take to stop before it is made to.
    cancel_within: float = 10.0
    #: How long an agent may say nothing in a turn in which it does not wait for people; 0: ever.
    silence_limit: float = 0.0
    #: How long a request may wait for another actor.
    request_within: float = 30.0
    #: How long a client may keep silent about a call of its tool; 0: for ever (R-10.40).
    client_tool_within: float = 600.0
    #: How long a client may take to answer what the host asks it (R-13.10).
    reverse_within: float = 60.0
    #: How long a watch may be there before somebody listens (R-14.3).
    unheard_within: float = 30.0
    #: Watches on files of this machine that there may be at a time.
    watches: int = 1000
    #: Requests of one connection that may be open at a time; more wait unread.
    open_requests: int = 256
    #: How long a session may be unused, and heard by nobody, before it is ended; None: for ever.
    drafts_after: float | None = None
    #: How long text of an agent's that follows other text may be gathered; 0: not at all.
    delta_window: float = 0.0
    #: Turns in one page of older ones.
    page: int = 50
    #: How many times as long as a write took the journal is left alone: what comes shares the next.
    pace: float = 2.0
    #: Terminals that there may be, those that have ended and were not disposed of included.
    terminals: int = 256
    #: Characters of a terminal's output that are kept (R-12.26).
    scrollback: int = 1 << 20
    #: What may wait for a program that does not read its terminal.
    terminal_input_bytes: int = 4 << 20
    #: Folders whose files may be asked for.
    served: Sequence[URI] = ()
    #: What comes of a request for what is outside: "ask", "allow" or "deny", see `actors.grants`.
    grants: str = "ask"
    name: str = "ahpd"
    version: str = ""


class OwnWatch(Struct, frozen=True, eq=False):
    """A watch on files of this machine: for whom it was made, and its actor's id."""

    watched: Watched
    client_id: str
    number: str


def _nobody_writes(_: str) -> None:
    """Until somebody writes anything down."""


class PastRow(Struct, frozen=True):
    """A conversation that an agent keeps and no session has, as a row of the catalogue."""

    provider: str
    conversation: PastConversation


class Host(Struct, eq=False):
    """One host's shared tables.

    `catalogue` holds the summary of every session as root subscribers were last told; it is None
    while stored sessions are still being read, when no list may be given (R-7.23, quirk 26).
    """

    ledger: Ledger
    window: ReplayWindow
    subscriptions: Subscriptions
    clients: Clients
    clock: Clock
    #: Makes ids: turn ids and the like, unique and, in tests, the same for the same seed.
    new_id: Callable[[], str]
    agents: Mapping[str, Agent]
    recorder: Recorder
    settings: Settings = field(default_factory=Settings)
    #: Who has the files of this machine; None: it has none.
    resources: Resources | None = None
    catalogue: dict[URI, SessionSummary] | None = field(default_factory=dict)
    #: Sessions that are kept, and not loaded.
    dormant: Dormant = field(default_factory=Dormant)
    #: Rows of the catalogue that are conversations which only their agents have.
    past: dict[URI, PastRow] = field(default_factory=dict)
    #: Conversations of sessions that were ended, by agent and name: they are no rows again.
    let_go: set[tuple[str, str]] = field(default_factory=set)
    #: Who has been let out something and not been told to write it.
    heard: dict[Listener, None] = field(default_factory=dict)
    #: What starts processes on terminals; None: there are none here.
    terminals: Terminals | None = None
    #: Terminals whose processes are just being started: no list has them yet.
    starting: set[URI] = field(default_factory=set)
    #: The one in which commands of a session are run in a folder, last; None: it is not known how
    #: they go in a shell there.
    shells: dict[tuple[URI, str | None], URI | None] = field(default_factory=dict)
    #: How much output they may have under way.
    share: Share = field(default_factory=Share)
    #: What of these is served beside the folders.
    grants: Grants = field(default_factory=Grants)
    #: Watches on files of this machine, by channel.
    own_watches: dict[URI, OwnWatch] = field(default_factory=dict)
    #: Watches on clients' files: the channel, and the client that watches.
    watchers: dict[URI, str] = field(default_factory=dict)
    #: Told each token that a client hands over, so that it gets into nothing that is written.
    on_secret: Callable[[str], None] = _nobody_writes
    #: What is counted from the process's start on.
    tally: Tally = field(default_factory=Tally)
    #: What there is of telemetry; None: there is none.
    telemetry: Otlp | None = None
    #: Told each envelope that became visible, while somebody wants to know. Sync; never fails.
    on_out: Callable[[Entry], None] | None = None
    #: The file with the report on the latest crash of the actor at a path, if there is one.
    crash_report: Callable[[str], str | None] = _nobody_writes

    @property
    def default_provider(self) -> str:
        """The agent of a session that names none (R-8.2)."""
        return next(iter(self.agents))

    def agent_of(self, provider: str) -> Agent:
        """The agent of a session, which may have been kept by a host that had others."""
        return self.agents.get(provider) or AbsentAgent(provider)

    def notify(self, method: str, params: Wire, older: Wire | None) -> None:
        """Tell the subscribers of the root, in order with everything else.

        `older` is what a connection is told that negotiated 0.9 and would not understand `params`;
        None: nothing.
        """
        new = frame(notification(method, params.wire()))
        old: Frame | None = new
        if older is not params:
            old = None if older is None else frame(notification(method, older.wire()))

        def release() -> None:
            for listener in self.subscriptions.of(ROOT):
                told = old if listener.is_old else new
                if told is not None:
                    listener.tell(told)

        self.ledger.post(release)
