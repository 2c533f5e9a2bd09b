"""What tests of files share: a small tree with links out of it, and short ways to ask."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from ahpd.protocol.codec import decode
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.methods import CLIENT_METHODS
from ahpd.protocol.uris import URI
from ahpd.resources.files import FileResources
from ahpd.resources.port import Served


@attrs.define
class Files:
    """The adapter, asked as clients ask; URIs are of names in `folder` unless they are whole."""

    folder: Path
    resources: FileResources = attrs.field(factory=FileResources)
    served: list[URI] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.served = self.served or [self.folder.as_uri()]

    def uri(self, name: str) -> URI:
        return name if ":" in name else f"{self.folder.as_uri()}/{name}"

    async def ask(self, do: str, *names: str, **more: Any) -> Any:
        """`do` is ``read``, ``write`` and so on; the result as JSON."""
        method = "createResourceWatch" if do == "watch" else "resource" + do.capitalize()
        keys = ("source", "destination") if len(names) == 2 else ("uri",)
        given = dict(zip(keys, map(self.uri, names), strict=True))
        params = decode(CLIENT_METHODS[method].params, {"channel": "ahp-root://", **given, **more})
        result = await getattr(self.resources, do)(params, Served(self.served))
        if do == "watch":  # it was let, and that is all that is asked here
            result.close()
            return None
        return None if result is None else result.wire()

    async def write(self, name: str, data: str, **more: Any) -> None:
        await self.ask("write", name, data=data, encoding="utf-8", **more)

    async def names(self, name: str = "") -> list[str]:
        return [entry["name"] for entry in (await self.ask("list", name))["entries"]]


@contextmanager
def fails(code: int, *words: str) -> Iterator[pytest.ExceptionInfo[ProtocolError]]:
    """The block is refused with this code, in a sentence with these words."""
    with pytest.raises(ProtocolError) as caught:
        yield caught
    assert caught.value.code == code, repr(caught.value)
    assert all(word in caught.value.message for word in words), repr(caught.value)


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def watched_inodes() -> set[int]:
    """The numbers of the folders that the kernel watches for this process."""
    found = set()
    for name in os.listdir("/proc/self/fdinfo"):
        with suppress(OSError):
            text = Path(f"/proc/self/fdinfo/{name}").read_text()
            found |= {int(each, 16) for each in re.findall(r"^inotify .* ino:(\w+)", text, re.M)}
    return found
