"""How wire types are made and behave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from ahpd.protocol import decode
from ahpd.protocol.chat_actions import ChatDeltaAction
from ahpd.protocol.common import BaseParams, Implementation, ProtectedResourceMetadata
from ahpd.protocol.messages import CompletionsParams
from ahpd.protocol.model import Unknown, Wire, WireType, wire_name
from ahpd.protocol.terminal import TerminalExitedAction
from tests.protocol.strategies import wire_classes

DELTA = {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "c"}


@pytest.mark.parametrize(
    ("name", "wire"),
    [("id", "id"), ("turn_id", "turnId"), ("meta", "_meta"), ("max_latency_ms", "maxLatencyMs")],
)
def test_wire_names_are_camel_case(name: str, wire: str) -> None:
    assert wire_name(name) == wire


def test_verbatim_types_keep_their_names() -> None:
    made = ProtectedResourceMetadata(resource="r", jwks_uri="u")
    assert made.wire() == {"resource": "r", "jwks_uri": "u"}


def test_absent_fields_are_left_out_and_tags_are_filled_in() -> None:
    assert ChatDeltaAction(turn_id="t", part_id="p", content="c").wire() == DELTA


def test_a_missing_field_is_an_error_of_the_caller() -> None:
    with pytest.raises(TypeError):
        ChatDeltaAction(turn_id="t")  # type: ignore[call-arg]


def test_null_and_absent_are_told_apart() -> None:
    absent = decode(TerminalExitedAction, {"type": "terminal/exited"})
    null = decode(TerminalExitedAction, {"type": "terminal/exited", "exitCode": None})
    assert absent.exit_code is None
    assert null.exit_code is None
    assert not absent.is_null("exit_code")
    assert null.is_null("exit_code")
    assert null.wire() == {"type": "terminal/exited", "exitCode": None}
    assert absent != null


def test_a_value_set_over_a_null_is_written_once() -> None:
    null = decode(TerminalExitedAction, {"type": "terminal/exited", "exitCode": None})
    filled = null.evolve(exit_code=3)
    assert filled.wire() == {"type": "terminal/exited", "exitCode": 3}
    assert not filled.is_null("exit_code")


def test_unknown_keys_are_in_extra_and_survive_a_change() -> None:
    action = decode(ChatDeltaAction, {**DELTA, "new": {"a": None}})
    assert action.extra == {"new": {"a": None}}
    assert action.evolve(content="d").wire() == {**DELTA, "content": "d", "new": {"a": None}}


def test_evolve_gives_a_copy_and_leaves_the_old_one() -> None:
    old = decode(ChatDeltaAction, DELTA)
    new = old.evolve(content="d", turn_id="u")
    assert (old.content, new.content, new.turn_id, new.part_id) == ("c", "d", "u", "p")
    assert type(new) is ChatDeltaAction


def test_equality_is_by_type_fields_and_unknown_keys() -> None:
    one, two = decode(ChatDeltaAction, DELTA), decode(ChatDeltaAction, DELTA)
    assert one == two
    assert one != two.evolve(content="d")
    assert one != decode(ChatDeltaAction, {**DELTA, "new": 1})
    assert one != "something else"
    with pytest.raises(TypeError):
        hash(one)


def test_a_value_shows_what_it_holds() -> None:
    made = Implementation(name="n", title="t")
    assert repr(made) == "Implementation(name='n', title='t')"
    assert "extra={'x': 1}" in repr(decode(Implementation, {"name": "n", "x": 1}))


def test_an_unknown_variant_is_its_raw_object() -> None:
    made = Unknown(raw={"kind": "new", "a": 1})
    assert made.tag == "new"
    assert made.wire() == {"kind": "new", "a": 1}
    assert made == Unknown(raw={"kind": "new", "a": 1})


def test_attrs_knows_the_fields() -> None:
    of_attrs: Any = Implementation
    names = [field.name for field in attrs.fields(of_attrs)]
    assert names == ["name", "version", "title", "extra"]
    assert attrs.has(Implementation)


def test_the_metaclass_is_no_attrs_class() -> None:
    assert not hasattr(WireType, "__attrs_attrs__")


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls in wire_classes()])
def test_attrs_knows_the_fields_of_every_class(cls: Any) -> None:
    assert [field.name for field in attrs.fields(cls)] == [*cls.wire_names, "extra"]
    assert not hasattr(object.__new__(cls), "__dict__"), "slots keep states small"


class Base(Wire):
    """A base that is built after its subclass."""

    one: str
    two: str | None = None


class Derived(Base):
    """Declares a field of its base again, without its default."""

    kind: Literal["derived"] = "derived"
    two: str


def test_a_subclass_may_be_built_before_its_base() -> None:
    derived = Derived(one="1", two="2")
    base = Base(one="1")
    assert derived.wire() == {"one": "1", "two": "2", "kind": "derived"}
    assert base.wire() == {"one": "1"}
    assert derived.evolve(one="0").wire()["one"] == "0"
    assert base.evolve(two="2").wire() == {"one": "1", "two": "2"}


def test_a_field_declared_again_without_a_default_is_required() -> None:
    with pytest.raises(ValueError, match="two: expected string, got nothing"):
        decode(Derived, {"one": "1", "kind": "derived"})


def test_inherited_fields_come_first() -> None:
    assert list(CompletionsParams.wire_names)[:2] == list(BaseParams.wire_names)


def test_building_a_class_waits_for_its_first_use() -> None:
    code = (
        "import ahpd.protocol.chat as chat, ahpd.protocol.model as model\n"
        "assert '_attrs' not in chat.ChatState.__dict__\n"
        "import attrs\n"
        "attrs.fields(chat.ChatState)\n"
        "assert '_attrs' in chat.ChatState.__dict__\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_type_checkers_see_frozen_keyword_only_classes(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "sample.py"
    file.write_text(
        "from ahpd.protocol.common import Implementation\n"
        "made = Implementation(name='n')\n"
        "made.name = 'm'\n"
        "Implementation('n')\n"
        "Implementation(name=1)\n"
        "reveal_type(made.version)\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    told = result.stdout
    assert 'Property "name" defined in "Implementation" is read-only' in told
    assert "Too many positional arguments" in told
    assert 'incompatible type "int"; expected "str"' in told
    assert 'Revealed type is "str | None"' in told.replace("builtins.", "")
