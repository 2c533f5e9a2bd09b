"""`Wire`, the base of every wire type, and `Unknown`, the variant of a union nobody here knows.

A wire type is written as an annotated class, Python names for fields, and becomes an attrs class
whose wire names are the camelCase form (`turn_id` is ``turnId``, `meta` is ``_meta``)::

    class ChatDeltaAction(Wire):
        type: Literal["chat/delta"] = "chat/delta"
        turn_id: str
        part_id: str
        content: str
        meta: Object | None = None

Values are never changed after they are made; `Wire.evolve` gives a changed copy. Type checkers
treat the classes as frozen. At run time they are not: a frozen attrs instance costs twice as much
to build, and building them is the hot path.

**Absent and null.** A field that holds None was left out by the peer, or was sent as ``null``.
Where it was ``null`` its key is also in `extra`, so that encoding writes it back; `is_null` tells
the two apart. Keys that the type does not declare are in `extra` too and are written back as they
came (invariant 10, R-1.21).

**Why lazily.** attrs needs about a millisecond to build one class and the protocol has more than
300; an editor that starts ``ahpd --stdio`` would wait for it every time. The class statement here
only makes the slots. `__init__` (by attrs), `wire`, `evolve` and the decoder are made on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Self, TypeAlias, cast, dataclass_transform

import attrs

#: Any value that JSON can hold, as `ahpd.protocol.jsontext.loads` returns it.
JSON: TypeAlias = Any
#: A JSON object that the protocol leaves open, for instance ``_meta``.
Object: TypeAlias = Mapping[str, Any]

_NO_EXTRA: Object = {}


@functools.cache
def wire_name(name: str) -> str:
    """The wire name of a Python field name: ``turn_id`` gives ``turnId``, ``meta`` ``_meta``."""
    if name == "meta":
        return "_meta"
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class _AttrsRecord:
    """What `attrs.fields` reads of a class; builds the attrs class when it has not been yet.

    Not a property: the metaclass itself must not look like an attrs class, as it would to code
    that asks ``hasattr(type(value), "__attrs_attrs__")`` of a value that is a wire class.
    """

    def __get__(self, cls: WireType | None, owner: type) -> tuple[Any, ...]:
        if cls is None:
            raise AttributeError("__attrs_attrs__")
        _finish(cls)
        return cast("tuple[Any, ...]", cls.__dict__["_attrs"])

    def __set__(self, cls: WireType, attributes: tuple[Any, ...]) -> None:
        cls._attrs = attributes


@dataclass_transform(kw_only_default=True, frozen_default=True)
class WireType(type):
    """Metaclass of `Wire`: turns annotations into slots and puts off everything costly."""

    #: Python name -> wire name, in declaration order, inherited fields first.
    wire_names: dict[str, str]
    #: Python name -> default, for the fields that have one (None: optional).
    wire_defaults: dict[str, Any]
    _attrs: tuple[Any, ...]

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        verbatim: bool = False,
    ) -> WireType:
        """Make the class; `verbatim` keeps Python names as wire names (RFC 9728 metadata)."""
        own = [field for field in namespace.get("__annotations__", {}) if field != "extra"]
        names: dict[str, str] = {}
        defaults: dict[str, Any] = {}
        for base in bases:
            if isinstance(base, WireType):
                names |= base.wire_names
                defaults |= base.wire_defaults
        for field in own:
            names[field] = field if verbatim else wire_name(field)
            if field in namespace:
                defaults[field] = namespace.pop(field)
            else:  # a field declared again without a default has none, whatever its base says
                defaults.pop(field, None)
        namespace.pop("extra", None)
        namespace["__slots__"] = tuple(
            field for field in own if not any(hasattr(base, field) for base in bases)
        ) + (() if bases else ("extra",))
        namespace["__init__"] = _init_on_first_use
        namespace["wire"] = _wire_on_first_use
        namespace["evolve"] = _evolve_on_first_use
        cls = super().__new__(mcs, name, bases, namespace)
        cls.wire_names = names
        cls.wire_defaults = defaults
        return cls

    __attrs_attrs__ = _AttrsRecord()


def _finish(cls: WireType) -> None:
    """Let attrs build `__init__` and its record of the fields, in place, once."""
    if "_attrs" in cls.__dict__:
        return
    these = {
        field: attrs.field(default=cls.wire_defaults[field])
        if field in cls.wire_defaults
        else attrs.field()
        for field in cls.wire_names
    }
    these["extra"] = attrs.field(default=_NO_EXTRA)
    del cls.__init__  # type: ignore[misc]
    attrs.define(
        cls, these=these, kw_only=True, slots=False, eq=False, repr=False, auto_detect=True
    )


def _init_on_first_use(self: Wire, **values: Any) -> None:
    _finish(type(self))
    self.__init__(**values)  # type: ignore[misc]


def _wire_on_first_use(self: Wire) -> dict[str, JSON]:
    from ahpd.protocol.compiled import compile_encoder  # noqa: PLC0415 - it imports this module

    cls = type(self)
    cls.wire = compile_encoder(cls)  # type: ignore[method-assign, assignment]
    return self.wire()


def _evolve_on_first_use(self: Wire, **changes: Any) -> Wire:
    from ahpd.protocol.compiled import compile_evolve  # noqa: PLC0415 - it imports this module

    cls = type(self)
    cls.evolve = compile_evolve(cls)  # type: ignore[method-assign]
    return self.evolve(**changes)


class Wire(metaclass=WireType):
    """Base of the wire types; see the module's docstring."""

    extra: Object = _NO_EXTRA

    def wire(self) -> dict[str, JSON]:
        """This value as plain JSON values; optional fields that are None are left out."""
        raise AssertionError("replaced by the metaclass in every class")

    def evolve(self, **changes: Any) -> Self:
        """A copy with `changes` applied, sharing everything else with this one."""
        raise AssertionError("replaced by the metaclass in every class")

    def is_null(self, name: str) -> bool:
        """Whether the peer sent this field (by Python name) as an explicit ``null``."""
        return getattr(self, name) is None and type(self).wire_names[name] in self.extra

    def __eq__(self, other: object) -> bool:
        """Equal when of the same type with equal fields, unknown keys included."""
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Wire)
        return self.extra == other.extra and all(
            getattr(self, name) == getattr(other, name) for name in type(self).wire_names
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The type with the fields that hold something."""
        shown = [
            f"{name}={value!r}"
            for name in type(self).wire_names
            if (value := getattr(self, name)) is not None
        ]
        shown += [f"extra={self.extra!r}"] if self.extra else []
        return f"{type(self).__name__}({', '.join(shown)})"


class Unknown(Wire):
    """A variant of a tagged union that this version does not know, kept as it came (R-1.21)."""

    raw: Object

    @property
    def tag(self) -> str:
        """The discriminator, whichever of the protocol's tag names the object carries."""
        return next(str(self.raw[key]) for key in TAGS if key in self.raw)


#: Names of the fields that tell the variants of a union apart, in the order they are tried.
TAGS = ("type", "kind", "status", "state", "approved")
