"""A whole host inside the test's own process, with peers on memory transports.

::

    async with running_host(seed=1) as host:
        phone = await host.peer("phone")                  # a peer whose every word is the test's
        await phone.hello(subscribe=(ROOT,))
        await phone.request("createSession", channel=SESSION)
        async with host.client("laptop", subscriptions=(ROOT, SESSION)) as laptop:
            ...                                           # an `ahpd.client` on a wire of its own
            host.wires["laptop"].cut()
        assert differences(laptop, host) == []

``running_host(journal=FileMedium(path))`` keeps what it has in a file: then `RunningHost.restart`
ends the process as `kill -9` does, and starts another one on what that left.

Time is trio's, which the test suite runs on a mock clock. When the block ends everybody hangs up,
the tree is stopped, and the test fails if any frame was illegal, a number on a connection did not
grow, an actor crashed that nobody meant to, or an envelope was seen before it was durable.
"""

from tests.harness.agent import Puppet, PuppetAgent
from tests.harness.host import RunningHost, running_host
from tests.harness.journal import FileMedium, Medium, SlowJournal
from tests.harness.peer import RawPeer, Refused
from tests.harness.replicas import differences
from tests.harness.stream import Stream
from tests.harness.tap import Tap, Taps
from tests.harness.telemetry import PuppetLogs, puppet_telemetry
from tests.harness.terminal import PuppetTerminal, PuppetTerminals
from tests.harness.wire import Wire

__all__ = [
    "FileMedium",
    "Medium",
    "Puppet",
    "PuppetAgent",
    "PuppetLogs",
    "PuppetTerminal",
    "PuppetTerminals",
    "RawPeer",
    "Refused",
    "RunningHost",
    "SlowJournal",
    "Stream",
    "Tap",
    "Taps",
    "Wire",
    "differences",
    "puppet_telemetry",
    "running_host",
]
