"""Which actor is meant: by its path, its channel's URI, or as much of either as tells it apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from actors.host import Host
from ahpd.protocol.errors import ErrorCode, ProtocolError
from supervisors import System, sys

#: Candidates that an error names.
NAMED = 8


def find(system: System, host: Host, name: str, *, supervisors_too: bool = False) -> str:
    """The path of the actor that `name` means. Sync.

    A whole path wins; then the URI of a channel; then the end of a path, as ``chat/0``; then the
    beginning of one, or of what follows any ``/`` in it. With `supervisors_too` they count as well;
    without, that of a session stands for the session's own actor.

    Raises `ProtocolError` when there is none, or several that fit as well; it names some.
    """
    wanted = name.strip().strip("/")
    paths = sys.paths(system)
    if not wanted:
        raise ProtocolError(ErrorCode.INVALID_PARAMS, "which actor? ahpd ps shows their paths")
    if wanted in set(paths):
        return wanted if supervisors_too else _actor(system, wanted)
    channel = host.ledger.find(name.strip())
    if channel is not None and system.registry.get(channel.path) is not None:
        return channel.path
    for fits in _FITS:
        found: Sequence[str] = [path for path in paths if fits(path, wanted)]
        if not supervisors_too:
            found = _actors(system, found)
        elif found and all(path.startswith(found[0] + "/") for path in found[1:]):
            found = found[:1]
        if len(found) == 1:
            return found[0]
        if found:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, _several(name, found))
    raise ProtocolError(
        ErrorCode.NOT_FOUND, f"there is no actor {name}; ahpd ps --all shows what there is"
    )


_FITS: Sequence[Callable[[str, str], bool]] = (
    lambda path, wanted: path.endswith("/" + wanted),
    lambda path, wanted: path.startswith(wanted),
    lambda path, wanted: "/" + wanted in path,
)


def _actor(system: System, path: str) -> str:
    """The actor that is meant by the path of an actor, or of a session's supervisor."""
    cell = system.registry.get(path)
    if cell is None or not cell.is_supervisor:
        return path
    own = f"{path}/{path.partition('/')[0]}"
    if system.registry.get(own) is not None:
        return own
    inner = "; ".join(sys.paths(system, path)[:NAMED])
    raise ProtocolError(
        ErrorCode.INVALID_PARAMS,
        f"{path} is a supervisor, which handles no messages; below it: {inner or 'nothing'}",
    )


def _actors(system: System, found: Sequence[str]) -> Sequence[str]:
    """Without supervisors; only the session's own actor where a whole session fits."""
    supervisors = [path for path in found if _is_supervisor(system, path)]
    heads = [path for path in supervisors if f"{path}/{path.partition('/')[0]}" in found]
    rest = [path for path in found if path not in supervisors]
    if len(heads) == 1 and all(path.startswith(heads[0] + "/") for path in rest):
        return [f"{heads[0]}/{heads[0].partition('/')[0]}"]
    return rest


def _is_supervisor(system: System, path: str) -> bool:
    cell = system.registry.get(path)
    return cell is not None and cell.is_supervisor


def _several(name: str, found: Sequence[str]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{name} may be any of: {', '.join(found[:NAMED])}{more}"
