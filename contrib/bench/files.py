"""What watches and completions cost: ``python contrib/bench/files.py [--changes N] [--files N]``.

* **watch**: from a change on the disk to the batch that tells it, p50 and p99, beside how long the
  plainest program that reads the kernel's words takes to see the same; and how many of the
  changes were never told. Most of the latency is the 50 ms in which changes are gathered.
* **completions**: the first answer in a tree nobody has asked about yet, later ones, and how long
  it takes until all files are known, beside `os.walk` over the same tree.

Both run the adapter alone, in temporary folders.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import trio

from ahpd.protocol.resources import CreateResourceWatchParams
from ahpd.resources.files import FileResources
from ahpd.resources.inotify import ALL, Inotify
from ahpd.resources.port import Served

#: Changes that are made between two pauses, and the length of those (s).
BURST, PAUSE = 25, 0.01


def p(values: list[float], part: float) -> float:
    """A percentile, in milliseconds."""
    ranked = sorted(values)
    return 1000 * ranked[min(len(ranked) - 1, math.ceil(part * len(ranked)) - 1)]


async def watch(changes: int) -> bool:
    """Changes in a tree of 100 folders; whether all of them were told."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number in range(100):
            (root / str(number)).mkdir()
        resources = FileResources()
        params = CreateResourceWatchParams(uri=root.as_uri(), recursive=True)
        watched = await resources.watch(params, Served([root.as_uri()]))
        made: dict[str, float] = {}
        told: dict[str, float] = {}

        async def follow() -> None:
            while True:
                await watched.changed()
                now = time.perf_counter()
                for change in watched.take(1 << 20):
                    told.setdefault(change.uri, now)

        def change() -> None:
            for number in range(changes):
                path = root / str(number % 100) / f"f{number}"
                made[path.as_uri()] = time.perf_counter()
                if number % 2:
                    path.write_text("1")
                else:  # as editors save
                    other = path.with_name(f".{number}.tmp")
                    other.write_text("1")
                    os.replace(other, path)
                if number % BURST == 0:
                    time.sleep(PAUSE)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(resources.keep_watch)
            nursery.start_soon(follow)
            await trio.to_thread.run_sync(change)
            with trio.move_on_after(10):
                while not made.keys() <= told.keys():  # noqa: ASYNC110 - told all the time
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        watched.close()
        late = [told[uri] - at for uri, at in made.items() if uri in told]
        missed = len(made.keys() - told.keys())
        print(
            f"watch        {changes} changes: p50 {p(late, 0.5):.1f} ms,"
            f" p99 {p(late, 0.99):.1f} ms, missed {missed} (aim: 0)"
        )
        bare = await trio.to_thread.run_sync(plainest, root, min(changes, 2000))
        print(
            f"             the kernel's words alone: p50 {p(bare, 0.5):.1f} ms,"
            f" p99 {p(bare, 0.99):.1f} ms"
        )
        return missed == 0


def plainest(root: Path, changes: int) -> list[float]:
    """How long it takes until a program that does nothing else has read of a change."""
    inotify = Inotify()
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    inotify.add(folder, ALL)
    late = []
    for number in range(changes):
        begun = time.perf_counter()
        (root / f"bare{number}").touch()
        while not inotify.read()[0]:
            pass
        late.append(time.perf_counter() - begun)
    os.close(folder)
    return late


def fill(root: Path, files: int) -> None:
    """A tree of so many files, a tenth of them ignored."""
    (root / ".gitignore").write_text("*.tmp\n!keep.tmp\n/build/\n")
    for number in range(files // 100):
        folder = root / f"part{number % 40}" / f"module{number}"
        folder.mkdir(parents=True)
        for other in range(100):
            end = "tmp" if other % 10 == 0 else "py"
            os.close(os.open(folder / f"file_{number}_{other}.{end}", os.O_CREAT | os.O_WRONLY))


async def completions(files: int) -> None:
    """Answers in a tree of so many files."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        await trio.to_thread.run_sync(fill, root, files)
        begun = time.perf_counter()
        seen = await trio.to_thread.run_sync(lambda: sum(len(each[2]) for each in os.walk(root)))
        walked = time.perf_counter() - begun
        resources = FileResources()

        async def ask(typed: str) -> tuple[float, int]:
            begun = time.perf_counter()
            found = await resources.find(typed, [root.as_uri()], 50)
            return time.perf_counter() - begun, len(found)

        begun = time.perf_counter()
        first, count = await ask("file_1")
        last = f"file_{files // 100 - 1}_99.py"
        while True:
            _, there = await ask(last)
            if there and await _is_there(resources, root, last):
                break
            await trio.sleep(0.02)
        whole = time.perf_counter() - begun
        times = [
            (await ask(typed))[0]
            for typed in (
                "f",
                "file",
                "module1",
                "part3/mod",
                "file_7_7",
                "fl77py",
                "zzz",
                "",
                last,
            )
            for _ in range(20)
        ]
        print(
            f"completions  {seen} files: first answer {1000 * first:.0f} ms ({count} items),"
            f" all known after {whole:.1f} s, then p50 {1000 * statistics.median(times):.1f} ms,"
            f" p99 {p(times, 0.99):.1f} ms"
        )
        print(f"             os.walk over them: {walked:.1f} s")


async def _is_there(resources: FileResources, root: Path, name: str) -> bool:
    found = await resources.find(name, [root.as_uri()], 1)
    return bool(found) and found[0].label.endswith(name)


async def main(changes: int, files: int) -> int:
    """Both, one after the other; 1 when a change was missed."""
    complete = await watch(changes)
    await completions(files)
    return 0 if complete else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=200_000)
    arguments = parser.parse_args()
    sys.exit(trio.run(main, arguments.changes, arguments.files))
