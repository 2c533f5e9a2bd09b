"""`Discreet`: a value that can be shown without what is nobody's business."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Discreet(Struct, frozen=True):
    """Base of values that hold secrets: those fields are left out of ``repr``, so of every log."""

    #: The names of the fields that are not shown.
    hidden: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        """As every struct's, without the hidden fields."""
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name in self.__struct_fields__
            if name not in self.hidden
        )
        return f"{type(self).__name__}({', '.join(shown)})"
