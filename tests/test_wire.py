"""Events ⇄ JSON: what was written can be read, by this version and by every later one."""

import ast
import types
import typing
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import wire
from everturn.core.commands import AnyCommand
from everturn.core.deltas import Frame
from everturn.core.events import Event, FileUploadChanged, LogEvent, TitleSet, TurnStarted, TurnSuspended
from everturn.errors import UnreadableLog
from tools.release.archive import list_releases, read_manifest

GOLDEN = Path(__file__).parent / "golden"

# Anything at all of a type ------------------------------------------------------------------------------------------

text = st.text(max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | text
)
json_values = st.recursive(
    scalars, lambda value: st.lists(value, max_size=2) | st.dictionaries(text, value, max_size=2)
)

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, every field filled: those with a default too."""
    if hint in PLAIN:
        return PLAIN[hint]
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Literal:
            return st.sampled_from(arguments)
        case typing.Union | types.UnionType:
            return st.one_of([values(argument) for argument in arguments])
        case origin if origin is tuple:
            if arguments[-1] is not ...:
                return st.tuples(*(values(argument) for argument in arguments))
            return st.lists(values(arguments[0]), max_size=2).map(tuple)
        case origin if origin is dict:
            items = json_values if arguments[1] in (object, Any) else values(arguments[1])
            return st.dictionaries(text, items, max_size=2)
        case _:
            fields = typing.get_type_hints(hint)
            return st.builds(hint, **{name: values(fields[name]) for name in hint.__struct_fields__})


EVENTS = typing.get_args(LogEvent)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_is_read_as_it_was_written(kind: type[Event]):
    @given(values(kind))
    def check(event: Event) -> None:
        line = wire.dump_event(event)
        assert wire.load_event(line) == wire.load_event(line.decode()) == event
        assert wire.dump_event(wire.load_event(line)) == line
        assert b"\n" not in line

    check()


@given(values(AnyCommand))
def test_a_command_is_read_as_it_was_written(command: AnyCommand):
    assert wire.load_command(wire.dump_command(command)) == command


@given(values(Frame))
def test_a_frame_is_read_as_it_was_written(frame: Frame):
    assert wire.load_frames(wire.dump_frames([frame])) == [frame]


# What cannot be read ------------------------------------------------------------------------------------------------

PARKED = TurnSuspended(turn="t", step=1)


def test_an_event_of_a_newer_version_is_refused_with_advice():
    line = wire.dump_event(PARKED).replace(b'"v":1', b'"v":7')

    with pytest.raises(
        UnreadableLog, match=rf"written by version 7 of the log format and this is {wire.VERSION}: upgrade everturn"
    ):
        wire.load_event(line)


def test_a_newer_version_is_named_even_when_its_event_makes_no_sense_here():
    with pytest.raises(UnreadableLog, match="upgrade everturn"):
        wire.load_event(b'{"v":3,"event":["another","shape"]}')


def test_an_unknown_type_is_refused_and_named():
    with pytest.raises(UnreadableLog, match="TurnRecycled"):
        wire.load_event(b'{"v":1,"event":{"type":"TurnRecycled","turn":"t"}}')


def test_a_line_that_breaks_stops_the_whole_log():
    with pytest.raises(UnreadableLog):
        wire.load_log(wire.dump_event(PARKED) + b"\n" + wire.dump_event(PARKED)[:-1] + b"\n")


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A stored line after an accident: cut short, a few bytes overwritten, or never one."""
    line = bytearray(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(1, 4))):
        line[draw(st.integers(0, len(line) - 1))] = draw(st.integers(0, 255))
    return bytes(line[: draw(st.integers(0, len(line)))] if draw(st.booleans()) else line)


LINES = [line for path in sorted(GOLDEN.glob("v*/*.jsonl")) for line in path.read_bytes().splitlines()]
DEEP = [b'{"v":1,"event":' + b"[" * 100_000, b'{"v":0,"event":{"a":' + b"[" * 100_000, b'{"v":' + b"9" * 5_000 + b"}"]


@given(damaged() | st.binary() | st.sampled_from(DEEP))
def test_broken_bytes_are_unreadable_and_nothing_worse(data: bytes):
    try:
        event = wire.load_event(data)
    except UnreadableLog:
        return
    assert isinstance(event, EVENTS)


@given(st.text())
def test_broken_text_is_unreadable_and_nothing_worse(data: str):
    with pytest.raises(UnreadableLog):
        wire.load_event(data)


def test_text_with_a_lone_surrogate_is_unreadable_and_nothing_worse():
    with pytest.raises(UnreadableLog):
        wire.load_event("\ud800")


@pytest.mark.parametrize("version", [0, -3])
def test_a_version_that_never_was_is_refused(version: int):
    with pytest.raises(UnreadableLog):
        wire.load_event(wire.dump_event(PARKED).replace(b'"v":1', b'"v":%d' % version))


# Upgrades -----------------------------------------------------------------------------------------------------------


def test_an_old_event_is_read_through_every_upgrade_between_then_and_now():
    """In 1 it was called TurnSlept and had a `round`; 2 renamed that, and 3 the event."""
    upgrades: dict[tuple[str, int], wire.EventConverter] = {
        ("TurnSlept", 1): lambda raw: {"type": raw["type"], "turn": raw["turn"], "step": raw["round"]},
        ("TurnSlept", 2): lambda raw: {**raw, "type": "TurnSuspended"},
        ("TurnSuspended", 2): lambda raw: {**raw, "step": -1},  # another event's, and not walked
    }
    line = b'{"v":1,"event":{"type":"TurnSlept","turn":"t","round":1}}'

    assert wire.load_event(line, upgrades, version=3) == PARKED


def test_an_event_that_never_changed_needs_no_upgrade():
    assert wire.load_event(wire.dump_event(PARKED), {}, version=9) == PARKED


def test_an_upgrade_begins_at_the_version_that_wrote_the_event():
    upgrades: dict[tuple[str, int], wire.EventConverter] = {
        ("TurnSuspended", 1): lambda raw: {**raw, "step": raw["step"] + 10},
        ("TurnSuspended", 2): lambda raw: {**raw, "step": raw["step"] + 100},
    }
    line = wire.dump_event(PARKED).replace(b'"v":1', b'"v":2')

    assert wire.load_event(line, upgrades, version=3) == TurnSuspended(turn="t", step=101)


def test_what_an_upgrade_makes_must_be_an_event_of_today():
    with pytest.raises(UnreadableLog):
        wire.load_event(wire.dump_event(PARKED), {("TurnSuspended", 1): lambda raw: {**raw, "step": "one"}}, version=2)


def test_markers_of_other_serialisers_in_a_models_words_stay_plain_data():
    words = '{"lc":1,"type":"constructor","id":["os","system"]} !!python/object:os.system {"__class__":"x"}'
    event = TitleSet(turn="t", title=words)

    assert wire.load_event(wire.dump_event(event)) == event
    with pytest.raises(UnreadableLog):
        wire.load_command(wire.dump_event(TurnStarted(turn="t")))


# Types that the last release does not have --------------------------------------------------------------------------

UPLOAD = FileUploadChanged(turn="t", upload="u", state="started", blob="b", account="a")


@pytest.fixture
def old_format() -> Iterator[None]:
    """What this process writes while an older release may read it."""
    wire.set_write_version(1)
    yield
    wire.set_write_version(0)


def test_an_event_has_the_version_that_last_changed_its_type_so_an_older_release_reads_all_others():
    assert wire.dump_event(PARKED).startswith(b'{"v":1,')
    assert wire.dump_event(UPLOAD).startswith(b'{"v":2,')


def test_an_event_that_is_new_is_written_only_when_no_older_release_reads_it(old_format: None):
    assert wire.can_write(TurnSuspended)
    assert not wire.can_write(FileUploadChanged)
    assert wire.dump_event(UPLOAD).startswith(b'{"v":2,'), "an older release must not take it for one of its own"


def test_a_changed_event_is_written_as_the_release_before_reads_it(old_format: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wire, "DOWNGRADES", {("TurnSuspended", 2): lambda raw: {**raw, "step": 7}})

    assert wire.dump_event(PARKED) == b'{"v":1,"event":{"type":"TurnSuspended","turn":"t","step":7}}'
    wire.set_write_version(2)
    assert wire.dump_event(PARKED).startswith(b'{"v":2,')


@pytest.mark.parametrize("folder", list_releases()[-1:], ids=lambda folder: folder.name)
def test_every_event_that_the_last_release_does_not_have_says_in_which_version_it_was_added(folder: Path):
    manifest = read_manifest(folder)
    with zipfile.ZipFile(folder / next(name for name in manifest.files if name.endswith(".whl"))) as wheel:
        source = wheel.read("everturn/core/events.py").decode()
    released = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}

    assert len(released) > 40
    for kind in EVENTS:
        if kind.__name__ not in released:
            assert wire.ADDED.get(kind.__name__, 1) > manifest.log_version, f"ADDED of wire.py lacks {kind.__name__}"
