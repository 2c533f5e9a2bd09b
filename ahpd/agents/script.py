"""Scripts of the scripted agent: the file's format, how it is read, and which entry answers.

A script is JSON: ``{"turns": [{"when": REGEX, "steps": [STEP, …]}, …]}``. ``when`` is optional.
The first entry whose ``when`` is found in the prompt (`re.search`) plays; one without ``when``
fits every prompt. When none fits, the agent says the prompt back. Steps: `ahpd.agents.steps`.

Pure but for `load_script`, which reads one file and is meant for the start of a program.
"""

from __future__ import annotations

import difflib
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import attrs

from ahpd.agents.plays import STEPS
from ahpd.agents.steps import Crash, Echo, Fail, Misfit, Rule, Step, array_of
from ahpd.protocol.codec import converter, decode
from ahpd.protocol.faults import faults, shown
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import JSON, Unknown, WireType, wire_name
from ahpd.protocol.shapes import is_wire, shape_of

if TYPE_CHECKING:
    import cattrs

#: Largest file, most entries, most steps of one entry, longest ``when``.
MAX_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 1_000
MAX_STEPS = 100_000
MAX_REGEX = 1_000
#: ``when`` is looked for in this many characters from the start of a prompt, since a slow
#: expression on a huge prompt would stop the whole host.
SEARCHED = 10_000


class ScriptError(ValueError):
    """A script cannot be read or is not one; whoever wrote the file corrects it.

    `file` is the name it was read under. `where` is the place inside it, as
    ``turns/0/steps/2/tool/confirm``, and ``.`` for the whole.
    """

    def __init__(self, file: str, where: str, expected: str, found: str) -> None:
        place = "" if where == "." else f"{where}: "
        super().__init__(f"{file}: {place}expected {expected}, found {found}")
        self.file = file
        self.where = where
        self.expected = expected
        self.found = found


Pattern: TypeAlias = re.Pattern[str]


@attrs.frozen
class Entry:
    """What is played for the prompts that `when` is found in; None fits all."""

    steps: Annotated[tuple[Step, ...], array_of("steps", MAX_STEPS)]
    when: Pattern | None = None

    @property
    def after_first_end(self) -> int:
        """How many steps there are up to and including the first that ends the turn badly.

        0 when there is none: where a resumed turn goes on when nobody remembers how far it came.
        """
        ends = (n for n, step in enumerate(self.steps, 1) if isinstance(step, Fail | Crash))
        return next(ends, 0)


#: What plays when nothing else does.
ECHO = Entry(steps=(Echo(),))


@attrs.frozen
class Script:
    """All that a scripted agent will ever do."""

    turns: Annotated[tuple[Entry, ...], array_of("entries", MAX_ENTRIES)]

    def entry_for(self, prompt: str) -> Entry:
        """The first entry that fits the prompt, or `ECHO`."""
        start = prompt[:SEARCHED]
        fits = (entry for entry in self.turns if entry.when is None or entry.when.search(start))
        return next(fits, ECHO)


def load_script(path: str | Path) -> Script:
    """Read a script from a file. Blocks. Raises `ScriptError` and nothing else."""
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScriptError(name, ".", "a file that can be read", str(error.strerror)) from None
    if len(data) > MAX_BYTES:
        raise ScriptError(name, ".", f"a file of at most {MAX_BYTES} bytes", "a larger one")
    try:
        value = loads(data)
    except ParseError as error:
        raise ScriptError(name, ".", "JSON", f"something else ({error})") from None
    return parse_script(value, name)


def parse_script(value: JSON, file: str = "script") -> Script:
    """The script that a plain JSON value describes; `file` names it in errors.

    Raises `ScriptError`, for one fault when there are more.
    """
    structure = _converter()
    try:
        return structure.structure(value, Script)
    except Exception as error:  # noqa: BLE001 - cattrs groups and our own, all told apart below
        first = _first_misfit(error)
    where = "/".join(str(step) for step in first.path) or "."
    raise ScriptError(file, where, first.expected, first.found)


# --- structuring: cattrs builds the classes, the hooks below say precisely what does not fit ------

_Hook: TypeAlias = Callable[[Any, Any], Any]

#: Plain types: what to call them, and which Python type JSON gives for them.
_PLAIN: dict[type, str] = {str: "a string", bool: "true or false"}


@functools.cache
def _converter() -> cattrs.Converter:
    """The protocol's converter, strict: nothing is coerced and no key is passed over."""
    made = converter().copy()
    for plain, expected in _PLAIN.items():
        made.register_structure_hook(plain, _plain_hook(plain, expected))
    made.register_structure_hook_factory(is_wire, _wire_hook)
    made.register_structure_hook_factory(_is_wire_union, _wire_union_hook)
    made.register_structure_hook_factory(_is_record, functools.partial(_record_hook, made))
    made.register_structure_hook_func(lambda hint: hint is Step, functools.partial(_step, made))
    made.register_structure_hook_func(lambda hint: hint == Pattern, _pattern)
    made.register_structure_hook_factory(_is_ruled, functools.partial(_ruled_hook, made))
    return made


def _plain_hook(plain: type, expected: str) -> _Hook:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not plain:
            raise Misfit(expected, shown(value))
        return value

    return structure


def _wire_hook(cls: WireType) -> _Hook:
    def structure(value: Any, _: Any) -> Any:
        _check_keys(value, cls.wire_names.values())
        for fault in faults(shape_of(cls), value, strict=True):
            raise Misfit(fault.expected, fault.found, fault.path)
        return decode(cls, value)

    return structure


def _members(hint: Any) -> tuple[Any, ...]:
    return tuple(each for each in typing.get_args(hint) if each is not type(None))


def _is_wire_union(hint: Any) -> bool:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return is_union and all(each is Unknown or is_wire(each) for each in _members(hint))


def _wire_union_hook(hint: Any) -> _Hook:
    """One of several shapes of the protocol, and here no variant that nobody knows."""
    members = _members(hint)
    if len(members) == 1:
        only = _wire_hook(members[0])
        return lambda value, _: None if value is None else only(value, members[0])
    union: Any = functools.reduce(operator.or_, members)

    def structure(value: Any, _: Any) -> Any:
        if value is None and len(members) < len(typing.get_args(hint)):
            return None
        for fault in faults(shape_of(union), value, strict=True):
            raise Misfit(fault.expected, fault.found, fault.path)
        return decode(union, value)

    return structure


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and not is_wire(hint) and attrs.has(hint) and hint is not Step


def _record_hook(made: cattrs.Converter, cls: type[attrs.AttrsInstance]) -> _Hook:
    from cattrs.gen import make_dict_structure_fn, override  # noqa: PLC0415 - as in `converter`

    names = {field.name: wire_name(field.name) for field in attrs.fields(cls)}
    build = make_dict_structure_fn(
        cls,
        made,
        _cattrs_forbid_extra_keys=False,  # `_check_keys` says more
        **{name: override(rename=wire) for name, wire in names.items()},  # type: ignore[arg-type]
    )

    def structure(value: Any, hint: Any) -> Any:
        _check_keys(value, names.values())
        return build(value, hint)

    return structure


def _step(made: cattrs.Converter, value: Any, _: Any) -> Any:
    if not isinstance(value, dict) or not value:
        raise Misfit("a step, which is an object", "an empty one" if value == {} else shown(value))
    known = [key for key in value if key in STEPS]
    if not known:
        name = next(iter(value))
        raise Misfit(f"a step, one of {_listed(STEPS)}", _unknown(name, STEPS))
    if len(known) > 1:
        raise Misfit("one step in an object", " and ".join(f'"{key}"' for key in known))
    return made.structure(value, STEPS[known[0]].cls)


def _pattern(value: Any, _: Any) -> Pattern:
    expected = f"a regular expression of at most {MAX_REGEX} characters"
    if not isinstance(value, str) or len(value) > MAX_REGEX:
        raise Misfit(expected, shown(value))
    try:
        return re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise Misfit(expected, f"{shown(value)} ({error})") from None


def _is_ruled(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated and _rule(hint) is not None


def _rule(hint: Any) -> Rule | None:
    return next((note for note in typing.get_args(hint)[1:] if isinstance(note, Rule)), None)


def _ruled_hook(made: cattrs.Converter, hint: Any) -> _Hook:
    base, rule = typing.get_args(hint)[0], _rule(hint)
    assert rule is not None
    item = typing.get_args(base)[0] if typing.get_origin(base) is tuple else None

    def structure(value: Any, _: Any) -> Any:
        if not rule.fits(value):
            raise Misfit(rule.expected, shown(value))
        return value if item is None else tuple(_items(made, item, value))

    return structure


def _items(made: cattrs.Converter, hint: Any, values: list[Any]) -> Iterator[Any]:
    """Not left to cattrs, which would gather the faults of all items of a huge file."""
    structure = made.get_structure_hook(hint)
    for place, value in enumerate(values):
        try:
            yield structure(value, hint)
        except Exception as error:  # noqa: BLE001 - whatever it is, it goes on with its place
            raise _first_misfit(error, (place,)) from None


def _check_keys(value: Any, allowed: Iterable[str]) -> None:
    names = list(allowed)
    if not isinstance(value, dict):
        raise Misfit("an object", shown(value))
    for key in value:
        if key not in names:
            raise Misfit(f"a key, one of {_listed(names)}", _unknown(key, names), (key,))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _unknown(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return shown(name) + (f' (did you mean "{near[0]}"?)' if near else "")


# --- from what cattrs raises to one fault ---------------------------------------------------------


def _first_misfit(
    error: BaseException, path: tuple[str | int, ...] = (), hint: Any = None
) -> Misfit:
    """The first fault inside the groups of errors that cattrs makes; other errors fly on."""
    from cattrs.errors import (  # noqa: PLC0415 - as in `converter`
        AttributeValidationNote,
        BaseValidationError,
    )

    if isinstance(error, Misfit):
        return Misfit(error.expected, error.found, (*path, *error.path))
    if isinstance(error, KeyError):  # a field that must be there is not
        return Misfit(_described(hint), "nothing", path)
    if not isinstance(error, BaseValidationError):
        raise error
    inner = error.exceptions[0]
    for note in getattr(inner, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return _first_misfit(inner, (*path, wire_name(note.name)), note.type)
    return _first_misfit(inner, path, hint)


def _described(hint: Any) -> str:
    rule = _rule(hint) if typing.get_origin(hint) is Annotated else None
    if rule is not None:
        return rule.expected
    return _PLAIN.get(hint, "an object")
