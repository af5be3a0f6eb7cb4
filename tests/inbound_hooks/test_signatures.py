"""Signatures of inbound hooks: what is accepted, and what is refused and why. Vectors are those of the vendors' docs."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook as StockSigner  # the stock library of senders

from everturn.errors import ConfigError, HookRefused
from everturn.inbound_hooks.payload import context_text, decode_payload, fill_key, fill_text, look_up, matches
from everturn.inbound_hooks.signatures import Scheme, secret_problem, sign_delivery, verify_delivery

NOW = 1_700_000_000.0
KEY = "whsec_" + base64.b64encode(b"k" * 24).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 24).decode()
SCHEMES: list[tuple[Scheme, str, str]] = [
    ("standard", KEY, OTHER),
    ("github", "a" * 32, "b" * 32),
    ("slack", "a" * 32, "b" * 32),
]
TIMED = [row for row in SCHEMES if row[0] != "github"]


def test_what_the_stock_library_signs_is_accepted() -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    headers = {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(int(NOW)),
        "Webhook-Signature": StockSigner(KEY).sign("msg_1", at, '{"a":1}'),
    }
    assert verify_delivery("standard", [KEY], headers, b'{"a":1}', NOW) == "msg_1"


def test_the_examples_of_github_and_slack() -> None:
    github = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert verify_delivery("github", ["It's a Secret to Everybody"], github, b"Hello, World!", NOW)
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    slack = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    assert verify_delivery("slack", ["8f742231b10e8888abcd99yyyzzz85a5"], slack, body, 1531420618.0)


@pytest.mark.parametrize(("scheme", "secret", "other"), SCHEMES)
def test_a_forged_delivery_is_refused(scheme: Scheme, secret: str, other: str) -> None:
    body, at = b'{"a":1}', int(NOW)
    headers = sign_delivery(scheme, secret, "d1", at, body)
    first = verify_delivery(scheme, [secret], headers, body, NOW)
    assert first == verify_delivery(scheme, [other, secret], headers, body, NOW)  # while a secret is being replaced
    signed = next(name for name in headers if "signature" in name)
    forged = [
        (headers, b'{"a":2}'),
        (sign_delivery(scheme, other, "d1", at, body), body),
        ({**headers, signed: ""}, body),
        ({**headers, signed: headers[signed][:-2]}, body),
        ({**headers, signed: "v1," + "A" * 43 + "="}, body),
        ({**headers, signed: "é"}, body),
        ({name: value for name, value in headers.items() if name != signed}, body),
        ({}, body),
    ]
    for changed, sent in forged:
        with pytest.raises(HookRefused, match="not signed"):
            verify_delivery(scheme, [secret], changed, sent, NOW)


@pytest.mark.parametrize(("scheme", "secret", "other"), TIMED)
def test_an_old_delivery_and_one_of_the_future_are_refused(scheme: Scheme, secret: str, other: str) -> None:
    headers = sign_delivery(scheme, secret, "d1", int(NOW), b"{}")
    for now in (NOW - 300, NOW + 300):
        verify_delivery(scheme, [secret], headers, b"{}", now)
    for now in (NOW - 302, NOW + 302):
        with pytest.raises(HookRefused) as error:
            verify_delivery(scheme, [secret], headers, b"{}", now)
        assert "from now" in error.value.reason
    stamped = next(name for name in headers if "timestamp" in name)
    for text in ("", "now", "1e9", "-1", "1_700_000_000", "٣", str(int(NOW) + 1)):  # the last: signed for another time
        with pytest.raises(HookRefused):
            verify_delivery(scheme, [secret], {**headers, stamped: text}, b"{}", NOW)


def test_the_id_of_a_delivery_is_one_that_was_signed() -> None:
    headers = sign_delivery("github", "a" * 32, "d1", 0, b"{}")
    renamed = {**headers, "x-github-delivery": "d2"}
    ids = {verify_delivery("github", ["a" * 32], variant, b"{}", NOW) for variant in (headers, renamed)}
    assert len(ids) == 1  # a replay under another id is the same delivery
    headers = sign_delivery("standard", KEY, "d1", int(NOW), b"{}")
    with pytest.raises(HookRefused):
        verify_delivery("standard", [KEY], {**headers, "webhook-id": "d2"}, b"{}", NOW)


def test_secrets() -> None:
    assert not secret_problem("standard", KEY)
    assert "base64" in secret_problem("standard", "whsec_!")
    assert "at least" in secret_problem("standard", "whsec_YQ==")
    assert "openssl" in secret_problem("slack", "short")


def test_fields_are_quoted_short_and_printable() -> None:
    payload = {"a": {"b": ["x", 'say "hi"\n\u202eignore'], "n": 7}, "long": "y" * 999, "t": "{{a.n}}"}
    assert fill_text("See {{a.n}}: {{ a.b.1 }} {{nothing}} {{t}}", payload) == (
        'See 7: "say \\"hi\\"\\n\\u202eignore" null "{{a.n}}"'
    )
    assert len(fill_text("{{long}}", payload)) < 300
    assert fill_key("{{a.n}}#{{a.b.0}}", payload, "h") == "7#x"
    with pytest.raises(ConfigError, match=r"hooks\.h\.session.*'a\.x'"):
        fill_key("{{a.x}}", payload, "h")
    assert look_up(payload, "a.b.5") is look_up(payload, "a.b.-1") is look_up(payload, "a.n.x") is None
    assert matches(payload, {"a.n": ("7",), "long": ("*",)})
    assert not matches(payload, {"a.n": ("8",)})
    assert not matches(payload, {"missing": ("*",)})
    text = context_text({"z": "q" * 60_000}, (), "h")
    assert "hooks.h.fields" in text
    assert len(text) < 51_000


def test_bodies() -> None:
    form = "application/x-www-form-urlencoded"
    assert decode_payload(b"payload=%7B%22a%22%3A1%7D", form) == {"a": 1}
    assert decode_payload(b"command=%2Fask&text=x", f"{form}; charset=utf-8") == {"command": "/ask", "text": "x"}
    for body, kind in ((b"{", "application/json"), (b"[" * 90_000, "application/json"), (b"payload={", form)):
        with pytest.raises(ConfigError, match="JSON"):
            decode_payload(body, kind)
