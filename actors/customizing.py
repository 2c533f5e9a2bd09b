"""What a session is customized with, put together from three sources (RULES 18). Pure.

The agent says what it was customized with, and which slash commands it takes; clients publish
plugins (their entries have a `clientId`). Each source speaks for its own entries, and what people
decided about an entry stays when the source names it again: the tree is the host's (R-18.1).

Slash commands become prompts and skills, and those are children of a container, one for each kind
(R-18.13, R-18.15).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from ahpd.agents.events import Command
from ahpd.protocol.customizations import (
    ContainerCustomizationBase,
    Customization,
    CustomizationEnablement,
    CustomizationLoadedState,
    DirectoryCustomization,
    GlobalEnablement,
    McpServerCustomization,
    PluginCustomization,
    PromptCustomization,
    SessionEnablement,
    SkillCustomization,
    WorkspaceEnablement,
)
from ahpd.protocol.model import Unknown
from ahpd.protocol.uris import URI
from ahpd.reducers.change import id_of

Tree: TypeAlias = tuple[Customization, ...]

_PROMPTS, _SKILLS = "ahpd.commands/prompts", "ahpd.commands/skills"

#: From the most specific scope to the least (R-18.10).
_SCOPES = (SessionEnablement, WorkspaceEnablement, GlobalEnablement)


# ---- putting it together ------------------------------------------------------------------------


def with_commands(tree: Tree, provider: str, commands: Sequence[Command]) -> Tree:
    """The tree with these slash commands and no others."""
    others = tuple(entry for entry in tree if id_of(entry) not in (_PROMPTS, _SKILLS))
    return others + tuple(_decided(entry, tree) for entry in _containers(provider, commands))


def with_agents(tree: Tree, entries: Sequence[Customization]) -> Tree:
    """The tree with these entries of the agent's and no others."""
    kept = tuple(
        entry
        for entry in tree
        if id_of(entry) in (_PROMPTS, _SKILLS) or getattr(entry, "client_id", None) is not None
    )
    taken = {id_of(entry) for entry in kept}
    new = (entry for entry in entries if id_of(entry) not in taken)
    return tuple(_decided(entry, tree) for entry in new) + kept


def _containers(provider: str, commands: Sequence[Command]) -> Iterator[Customization]:
    """A folder for each kind there is. Nothing is stored there: it is the agent that knows them."""
    base = f"ahpd-commands:/{quote(provider, safe='')}"
    prompts = [each for each in commands if not each.is_skill]
    skills = [each for each in commands if each.is_skill]
    if prompts:
        children: Sequence[Any] = [
            PromptCustomization(**_named(each, f"{base}/prompts")) for each in prompts
        ]
        yield _directory(_PROMPTS, f"{base}/prompts", "Commands", "prompt", children)
    if skills:
        children = [SkillCustomization(**_named(each, f"{base}/skills")) for each in skills]
        yield _directory(_SKILLS, f"{base}/skills", "Skills", "skill", children)


def _directory(
    id: str, uri: URI, name: str, contents: Any, children: Sequence[Any]
) -> DirectoryCustomization:
    return DirectoryCustomization(
        id=id,
        uri=uri,
        name=name,
        enabled=True,
        contents=contents,
        writable=False,
        load=CustomizationLoadedState(),
        children=tuple(children),
    )


def _named(command: Command, folder: URI) -> dict[str, Any]:
    uri = f"{folder}/{quote(command.name, safe='')}"
    hint = command.argument_hint
    return {
        "id": uri,
        "uri": uri,
        "name": command.name,
        "description": command.description or None,
        "meta": None if hint is None else {"ahpd.argumentHint": hint},
    }


def _decided(entry: Any, tree: Tree) -> Any:
    """The entry with what people decided about it, and its children, before it was named again."""
    known = {id_of(each): each for each in _all(tree)}
    if isinstance(entry, ContainerCustomizationBase) and entry.children is not None:
        children = tuple(_with_decision(child, known) for child in entry.children)
        entry = entry.evolve(children=children)
    return _with_decision(entry, known)


def _with_decision(entry: Any, known: Mapping[object, Any]) -> Any:
    before = known.get(id_of(entry))
    if before is None or isinstance(entry, Unknown) or type(before) is not type(entry):
        return entry
    field = (
        "enablement"
        if isinstance(entry, PluginCustomization | McpServerCustomization)
        else ("enabled")
    )
    given, decided = getattr(entry, field), getattr(before, field)
    says_nothing = given is None or isinstance(entry, DirectoryCustomization)
    return entry.evolve(**{field: decided}) if says_nothing and decided is not None else entry


# ---- looking at it ------------------------------------------------------------------------------


def _all(tree: Tree) -> Iterator[Any]:
    """Entries at the top, then children (R-18.8)."""
    yield from tree
    for entry in tree:
        yield from getattr(entry, "children", None) or ()


def find(tree: Tree, wanted: str) -> Any:
    """The entry or child of that id; None when there is none."""
    return next((entry for entry in _all(tree) if id_of(entry) == wanted), None)


def holder(tree: Tree, wanted: str) -> Customization | None:
    """The entry at the top that is, or holds, the one of that id."""
    for entry in tree:
        if id_of(entry) == wanted:
            return entry
    for entry in tree:
        if any(id_of(child) == wanted for child in getattr(entry, "children", None) or ()):
            return entry
    return None


def is_on(entry: Any) -> bool:
    """Whether an entry, taken alone, is in effect: the most specific decision counts (R-18.10)."""
    if isinstance(entry, PluginCustomization | McpServerCustomization):
        first = entry.enablement[0] if entry.enablement else None
        return bool(getattr(first, "enabled", True))
    return getattr(entry, "enabled", None) is not False


def offered(tree: Tree) -> Iterator[PromptCustomization | SkillCustomization]:
    """The prompts and skills that a person may call by name, each name once.

    In effect only where their container is too (R-18.11), and not closed for people (R-18.14).
    """
    seen = set()
    for entry in tree:
        if not is_on(entry):
            continue
        for child in getattr(entry, "children", None) or ():
            if not isinstance(child, PromptCustomization | SkillCustomization):
                continue
            closed = isinstance(child, SkillCustomization) and child.disable_user_invocation
            if is_on(child) and not closed and child.name not in seen:
                seen.add(child.name)
                yield child


def order_fault(enablement: Sequence[CustomizationEnablement]) -> str | None:
    """Why a list of decisions is not one: see R-18.10; None when it is.

    A scope that is not known here may stand anywhere.
    """
    places = [_SCOPES.index(type(each)) for each in enablement if type(each) in _SCOPES]
    if places != sorted(places):
        return "decisions go from the most specific scope to the least"
    if len(places) != len(set(places)):
        return "there is one decision for each scope, and for one workspace only"
    return None
