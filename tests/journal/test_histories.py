"""What comes out of the file is what the host had, whatever happened before."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.keeping import baselines_json
from ahpd.journal.port import Batch
from tests.journal.support import World, as_killed, opened

#: Steps between two batches are drawn; so many in all.
STEPS = 400


async def _walk(path: Path, seed: int, limit: int) -> None:
    """Lives of a host, one after the other, the file as each left it when it was killed."""
    before: World | None = None
    for life in range(4):
        with opened(path, limit=limit) as (journal, kept):
            world = World(journal, kept, seed * 10 + life, limit=limit)
            await world.wake_all()
            if before is None:
                world.open_root()
            else:
                _same(before, world)
            for _ in range(STEPS // 4):
                world.step()
                if world.dice.random() < 0.05:
                    await world.keep_unheard()
                if world.dice.random() < 0.05:
                    await world.keep_in_vain()
                if world.dice.random() < 0.2:
                    await world.keep()
                    if world.dice.random() < 0.2:
                        await journal.sync()
                    if world.dice.random() < 0.1:
                        _same(world, await _again(path, world, limit))
            await world.keep()
            before = world
            path = as_killed(path, path.parent / f"life-{life}")
    with opened(path, limit=limit) as (journal, kept):
        world = World(journal, kept, seed, limit=limit)
        await world.wake_all()
        assert before is not None
        _same(before, world)


async def _again(path: Path, world: World, limit: int) -> World:
    """The host that would come up if this one were killed now."""
    copy = as_killed(path, path.parent / "again")
    copy.with_name(copy.name + "-shm").unlink(missing_ok=True)
    with opened(copy, limit=limit) as (journal, kept):
        other = World(journal, kept, 0, limit=limit)
        await other.wake_all()
    return other


def _same(before: World, after: World) -> None:
    assert after.kept.seq == before.ledger.seq
    mine, theirs = before.views(), after.views()
    assert theirs.keys() == mine.keys()
    for uri, each in mine.items():
        assert theirs[uri] == each, uri
        channel = after.ledger.find(uri)
        assert channel is not None
        was = before.ledger.find(uri)
        assert was is not None
        assert channel.key == was.key
        assert was.seq <= channel.seq <= before.ledger.seq
    assert after.kept.next_key > max(each.key for each in before.ledger.channels.values())
    # Everything that could be replayed, as far as it was not noted as gone yet, and no gap.
    reached = after.window.evicted_up_to
    assert reached <= max(before.window.evicted_up_to, 0) or len(after.window) == after.window.limit
    wanted = [each for each in before.replayable() if each[0] > reached]
    assert [each for each in after.replayable() if each[0] > before.window.evicted_up_to] == wanted
    for record in before.clients:
        other = after.clients.find(record.client_id)
        assert other is not None, record.client_id
        assert baselines_json(other.baselines) == baselines_json(record.baselines)
        left = before.ledger.seq if record.connections else record.left_at
        assert (other.version, other.left_at) == (record.version, left)
    assert {each.client_id for each in after.clients} <= {each.client_id for each in before.clients}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [3, 60, 1000])
async def test_a_host_that_comes_up_has_what_the_last_one_had(
    tmp_path: Path, seed: int, limit: int
) -> None:
    await _walk(tmp_path / "journal.db", seed, limit)


async def test_a_batch_written_twice_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with opened(path) as (journal, kept):
        world = World(journal, kept, 7)
        world.open_root()

        async def twice(batch: Batch) -> object:
            await journal.write(batch)
            return await journal.write(batch)

        for _ in range(60):
            for _ in range(5):
                world.step()
            await world.keep(twice)
        _same(world, await _again(path, world, 1000))
