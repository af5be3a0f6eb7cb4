"""What comes in is typed, finite, shallow and clean, or it does not come in."""

from __future__ import annotations

import json
import threading
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import api
from everturn.server.app import THREAD_DECODE_BYTES
from everturn.server.decode import (
    CONTAINERS,
    DEPTH,
    ITEMS,
    SURROGATE_REPAIR_LIMIT,
    decode_path_id,
    read_body,
    read_json,
    read_query,
)
from everturn.server.errors import RequestError
from everturn.server.route import Param
from tests.helpers.server_app import ask, make, make_house, word


def refused(code: str, data: bytes, kind: Any = None) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_body(data, kind) if kind else read_json(data)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"nonsense",
        b"NaN",
        b'{"a": NaN}',
        b"-Infinity",
        b"1e400",
        b"[1e999]",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"'a'",
        b'{"a":1} x',
        b'\xef\xbb\xbf{"a":1}',
        "{}".encode("utf-16"),
        b"[" * 100_000,
        b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1),
        b"[" + b"[]," * (CONTAINERS + 1) + b"[]]",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    refused("bad_json", data)


def test_just_deep_enough_is_fine() -> None:
    assert read_json(b"[" * DEPTH + b"]" * DEPTH)


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    raw = rb'["\ud83d\ude00", "\ud800", "\udc00x", "\ud800A", "\\ud800", "\uD800\uD800\uDC00", "\ud83dx\ude00"]'
    fine, lone, low, before, escaped, three, apart = read_json(raw)
    assert fine == "😀"
    assert (lone, low, before) == ("\ufffd", "\ufffdx", "\ufffdA")
    assert escaped == "\\ud800"
    assert three == "\ufffd\U00010000"
    assert apart == "\ufffdx\ufffd"


def test_nul_goes_from_values_and_from_names() -> None:
    assert read_json(b'{"a\\u0000b": ["x\\u0000y"]}') == {"ab": ["xy"]}


def test_of_a_name_that_comes_twice_the_last_counts() -> None:
    assert read_json(b'{"text": 1, "text": 2}') == {"text": 2}


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=20))
def test_whatever_python_writes_is_read_as_the_same_but_clean(value: Any) -> None:
    def clean(node: Any) -> Any:
        if isinstance(node, str):
            return node.replace("\0", "").encode("utf-8", "replace").decode()
        return [clean(item) for item in node] if isinstance(node, list) else node

    assert read_json(json.dumps(value).encode()) == clean(value)


@given(st.text(st.characters(categories=("Cs", "Lu", "Nd")) | st.just("\\"), max_size=20))
def test_any_mix_of_surrogates_and_backslashes_becomes_good_text(text: str) -> None:
    found = read_json(json.dumps(text).encode())
    found.encode()
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


def test_a_wrong_value_is_refused_with_its_place() -> None:
    refusal = refused("unfit", b'{"text": "hi", "max_steps": 0}', api.NewMessage)
    assert refusal.where == "$.max_steps"
    assert refused("unfit", b'{"txet": "hi"}', api.NewMessage).where == "$"
    assert refused("unfit", b"[]", api.NewMessage)
    assert refused("unfit", b'{"after": ""}', api.NewMessage).where == "$.after"


PARAMS = (
    Param("limit", {"type": "integer", "minimum": 1, "maximum": 200}),
    Param("since", {"type": "number", "minimum": 0}),
    Param("q", {"type": "string", "minLength": 1, "maxLength": 5}),
    Param("stream", {"type": "boolean"}),
)


def test_a_query_is_read_as_its_types() -> None:
    found = read_query(b"limit=5&since=1.5&q=a%20b&stream=true", PARAMS, is_strict=True)
    assert found == {"limit": 5, "since": 1.5, "q": "a b", "stream": True}
    assert read_query(b"", PARAMS, is_strict=True) == {}


@pytest.mark.parametrize(
    "query",
    [
        b"limit=0",
        b"limit=201",
        b"limit=x",
        b"limit=1&limit=2",
        b"limit=1e3",
        b"limit=99999999999999999999",
        b"since=nan",
        b"since=inf",
        b"since=1e999",
        b"since=-1",
        b"q=",
        b"q=toolong",
        b"q=%00",
        b"other=1",
        b"stream=maybe",
        b"\xff=1",
        b"&".join(b"q%d=1" % n for n in range(60)),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        read_query(query, PARAMS, is_strict=True)
    assert caught.value.code in ("unfit", "bad_request")


def test_a_needed_parameter_is_needed() -> None:
    with pytest.raises(RequestError, match="required"):
        read_query(b"", (Param("q", {"type": "string"}, is_needed=True),), is_strict=True)


@pytest.mark.parametrize("raw", ["", "a" * 201, "%00", "a%00b", "%ff", "%ed%a0%80", "a%0ab", "%e2%80%ae", "%1b"])
def test_what_can_be_no_id_is_none(raw: str) -> None:
    assert decode_path_id(raw) is None


def test_an_id_is_decoded_once() -> None:
    assert decode_path_id("a%2Fb") == "a/b"
    assert decode_path_id("a%252Fb") == "a%2Fb"
    assert decode_path_id("..") == ".."


@pytest.mark.parametrize(
    "data",
    [b"[%b0]" % (b"0," * ITEMS), b"{%b}" % b",".join(b'"%d":0' % at for at in range(ITEMS + 1))],
    ids=["list", "object"],
)
def test_what_has_too_many_values_is_not_gone_through(data: bytes) -> None:
    refused("bad_json", data)


def test_text_may_have_as_many_commas_as_it_likes() -> None:
    assert read_json(b'["%b"]' % (b"a," * 2 * ITEMS)) == ["a," * 2 * ITEMS]


def test_a_long_body_with_half_of_a_character_is_a_mistake_and_not_gone_over() -> None:
    escapes = b"\\n" * SURROGATE_REPAIR_LIMIT
    refused("bad_json", b'"%b\\ud800"' % escapes)
    assert read_json(b'"%b\\ud83d\\ude00"' % escapes).endswith("\U0001f600")


async def test_a_long_body_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[int] = []

    def reading(data: bytes, kind: object) -> object:
        where.append(threading.get_ident())
        return read_body(data, kind)

    monkeypatch.setattr("everturn.server.app.read_body", reading)
    site = make(await make_house())
    for size in (10, THREAD_DECODE_BYTES):
        answer = await ask(site, "POST", "/api/sessions", word("member"), json={"text": "x" * size})
        assert answer.status == 201
    assert [thread_id == threading.get_ident() for thread_id in where] == [True, False]


class _Rule(msgspec.Struct):
    action: Literal["allow", "deny"] | None = None


class _Rules(msgspec.Struct):
    role: Literal["owner", "viewer"] = "owner"
    rules: list[_Rule] = []
    named: dict[str, _Rule] = {}


@pytest.mark.parametrize(
    ("body", "where", "text"),
    [
        (b'{"role": "king"}', "$.role", "Invalid enum value 'king'; valid: owner, viewer"),
        (b'{"rules": [{}, {"action": "no"}]}', "$.rules[1].action", "Invalid enum value 'no'; valid: allow, deny"),
        (b'{"named": {"a": {"action": "no"}}}', "$.named[...].action", "Invalid enum value 'no'; valid: allow, deny"),
        (b'{"role": 1}', "$.role", "Expected `str`, got `int`"),
    ],
)
def test_an_invalid_enum_value_is_refused_with_the_valid_ones(body: bytes, where: str, text: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_body(body, _Rules)
    assert (caught.value.where, str(caught.value)) == (where, text)
