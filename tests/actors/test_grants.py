"""What is outside the served folders, and who may have it all the same (R-13.2 to R-13.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.grants import MOST_ASKED, Grants
from actors.host import Settings
from ahpd.daemon.control import GRANT, GRANTS, answer
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.jsonrpc import Request
from ahpd.resources.files import FileResources
from tests.actors.support import refused
from tests.harness import RawPeer, Refused, RunningHost, running_host

pytestmark = pytest.mark.real_time

TEXT = {"data": "x", "encoding": "utf-8"}


def serving(folder: Path, grants: str) -> dict[str, Any]:
    """A host that serves a folder of it."""
    (folder / "w").mkdir()
    (folder / "a").write_text("A")
    settings = Settings(served=((folder / "w").as_uri(),), grants=grants)
    return {"resources": FileResources(), "settings": settings}


async def by_hand(host: RunningHost, uri: str, *uses: str) -> Any:
    """What whoever runs the host grants; nothing: it is taken back."""
    params = {"uri": uri, **dict.fromkeys(uses, True)}
    return await answer(host.system, host.tables, Request(1, GRANT, params))


async def known(host: RunningHost) -> Any:
    return await answer(host.system, host.tables, Request(1, GRANTS, {}))


async def denied(peer: RawPeer, method: str, **params: Any) -> Any:
    """The grant that would help, as the refusal names it."""
    with pytest.raises(Refused) as caught:
        await peer.request(method, **params)
    assert caught.value.code == -32009, caught.value
    data: Any = caught.value.data
    return None if data is None else data["request"]


async def test_what_was_asked_for_in_vain_may_be_given_by_hand(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, "ask")) as host:
        ann = await host.peer("ann")
        await ann.hello()
        uri = f"{tmp_path.as_uri()}/a"
        wanted = await denied(ann, "resourceRead", uri=uri)
        assert wanted == {"channel": "ahp-root://", "uri": uri, "read": True}
        assert (await known(host))["asked"] == [], "a read is no request"
        assert await denied(ann, "resourceRequest", **wanted) == wanted
        with refused(-32009, "ahpd grant"):
            await ann.request("resourceRequest", uri=uri)
        assert await known(host) == {
            "grants": "ask", "given": [],
            "asked": [{"uri": uri, "clientId": "ann", "read": True, "write": False}],
        }  # fmt: skip

        assert await by_hand(host, uri, "read") == {"uri": uri}
        assert await ann.request("resourceRequest", **wanted) == {}
        assert (await ann.request("resourceRead", uri=uri))["data"] == "A"
        await ann.request("createResourceWatch", uri=uri)
        assert (await known(host))["asked"] == []
        assert (await known(host))["given"] == [{"uri": uri, "read": True, "write": False}]
        # To read is not to write, and a file is not its folder.
        for method, more in (("resourceWrite", TEXT), ("resourceDelete", {})):
            wanted = await denied(ann, method, uri=uri, **more)
            assert wanted == {"channel": "ahp-root://", "uri": uri, "write": True}
        assert await denied(ann, "resourceCopy", source=f"{tmp_path.as_uri()}/w", destination=uri)
        assert await denied(ann, "resourceList", uri=tmp_path.as_uri())
        assert (tmp_path / "a").read_text() == "A"

        assert await by_hand(host, uri) == {"uri": uri}
        assert await denied(ann, "resourceRead", uri=uri)
        with pytest.raises(ProtocolError, match="was not granted"):
            await by_hand(host, uri)


async def test_what_may_be_given_to_whoever_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ahpd.resources")
    async with running_host(**serving(tmp_path, "allow")) as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello()
        await bob.hello()
        folder = f"{tmp_path.as_uri()}/more"
        wanted = await denied(ann, "resourceMkdir", uri=f"{folder}/d")
        assert wanted == {"channel": "ahp-root://", "uri": f"{folder}/d", "write": True}
        assert await ann.request("resourceRequest", uri=folder, write=True, read=True) == {}
        assert "the client ann asks to read and write" in caplog.text
        await ann.request("resourceMkdir", uri=f"{folder}/d")
        await bob.request("resourceWrite", uri=f"{folder}/d/a", **TEXT)
        assert (await bob.request("resourceRead", uri=f"{folder}/d/a"))["data"] == "x"
        await bob.request("resourceDelete", uri=folder, recursive=True)
        for method in ("resourceList", "resourceRead"):
            assert await denied(bob, method, uri=f"{tmp_path.as_uri()}/a")
        # To write alone is asked for and given alone.
        assert await ann.request("resourceRequest", uri=f"{tmp_path.as_uri()}/a", write=True) == {}
        await ann.request("resourceWrite", uri=f"{tmp_path.as_uri()}/a", **TEXT)
        assert await denied(ann, "resourceRead", uri=f"{tmp_path.as_uri()}/a")


async def test_where_nothing_is_given_no_refusal_names_a_grant(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, "deny")) as host:
        ann = await host.peer("ann")
        await ann.hello()
        uri = f"{tmp_path.as_uri()}/a"
        for method in ("resourceRead", "resourceRequest", "createResourceWatch"):
            assert await denied(ann, method, uri=uri) is None
        assert (await known(host))["asked"] == []
        assert await ann.request("resourceRequest", uri=f"{tmp_path.as_uri()}/w/new") == {}


async def test_r_13_4_a_refusal_names_all_that_was_asked_for(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, "ask")) as host:
        ann = await host.peer("ann")
        await ann.hello()
        asked = {"channel": "ahp-root://", "uri": f"{tmp_path.as_uri()}/a"}
        for flags, named in (
            ({}, {"read": True}),
            ({"read": False, "write": False}, {"read": True}),
            ({"write": True}, {"write": True}),
            ({"read": True, "write": True}, {"read": True, "write": True}),
        ):
            assert await denied(ann, "resourceRequest", **asked, **flags) == {**asked, **named}
        # One of two is not enough.
        await by_hand(host, asked["uri"], "read")
        assert await denied(ann, "resourceRequest", **asked, read=True, write=True)
        await by_hand(host, asked["uri"], "write")
        assert await ann.request("resourceRequest", **asked, read=True, write=True) == {}


async def test_what_a_link_leads_to_later_was_not_granted(tmp_path: Path) -> None:
    async with running_host(**serving(tmp_path, "ask")) as host:
        ann = await host.peer("ann")
        await ann.hello()
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "f").write_text(name)
        link = tmp_path / "link"
        link.symlink_to("one")
        place = await by_hand(host, link.as_uri(), "read")
        assert place == {"uri": (tmp_path / "one").as_uri()}
        for way in ("link", "one"):
            got = await ann.request("resourceRead", uri=f"{tmp_path.as_uri()}/{way}/f")
            assert got["data"] == "one"
        link.unlink()
        link.symlink_to("other")
        assert await denied(ann, "resourceRead", uri=f"{link.as_uri()}/f")
        (tmp_path / "one").rename(tmp_path / "gone")
        (tmp_path / "one").symlink_to("other")
        assert await denied(ann, "resourceRead", uri=f"{tmp_path.as_uri()}/one/f")


def test_only_so_many_requests_are_remembered() -> None:
    grants = Grants()
    for number in range(3 * MOST_ASKED):
        grants.note(f"file:///{number}", "ann", ["read"])
    assert len(grants.asked) == MOST_ASKED
    assert f"file:///{3 * MOST_ASKED - 1}" in grants.asked
