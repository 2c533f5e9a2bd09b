"""Which actor is meant by a name."""

from __future__ import annotations

import pytest

from ahpd.inspection.paths import find
from ahpd.protocol.errors import ProtocolError
from tests.actors.support import S2, C, S, channel_of, room
from tests.harness import running_host


async def test_a_name_needs_only_tell_its_actor_apart() -> None:
    async with running_host() as host:
        ann = await room(host)
        system, tables = host.system, host.tables
        session, chat = channel_of(host, S).path, channel_of(host, C).path
        base = session.rpartition("/")[0]
        wanted = {
            session: session,
            f"/{chat}/": chat,
            S: session,
            C: chat,
            "chat/0": chat,
            base: session,
            base[:20]: session,
            base.partition("/")[2][:12]: session,
            "seq": "sequencer",
            "ann": f"{base}/annotations",
        }
        assert {name: find(system, tables, name) for name in wanted} == wanted
        assert find(system, tables, base, supervisors_too=True) == base
        assert find(system, tables, base[:-3], supervisors_too=True) == base

        await ann.request("createSession", channel=S2)
        with pytest.raises(ProtocolError, match="chat/0 may be any of: session/"):
            find(system, tables, "chat/0")
        with pytest.raises(ProtocolError, match="there is no actor nobody"):
            find(system, tables, "nobody")
        with pytest.raises(ProtocolError, match="connections is a supervisor"):
            find(system, tables, "connections")
