"""The story for real vendors, told to the local test provider in their place: its chapters, its cap, and what it never writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from everturn.core.canonical_json import JsonObject
from everturn.replay import Recording
from everturn.testing.provider import Call, Hang, HostedTool, Item, Provider, Say, ScriptedUsage, Status
from tools.live_vendors.__main__ import Plan, models_of, parse, run
from tools.live_vendors.redaction import REDACTED, redact, secrets_of
from tools.live_vendors.report import LiveReport, ModelReport
from tools.live_vendors.spend import CapReached, Spend
from tools.live_vendors.story import CHAPTERS, Chapter

OPENAI, ANTHROPIC = "openai:gpt-5.2", "anthropic:claude-opus-5"
ENVIRON = {"OPENAI_API_KEY": "openai-key-0123456789", "ANTHROPIC_API_KEY": "anthropic/key+0123456789"}


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


def last_message(body: JsonObject) -> str:
    """The last thing that a request says."""
    messages: list[JsonObject] = body.get("messages") or body["input"]
    return json.dumps(messages[-1])


def answer(body: JsonObject) -> list[Item]:
    """What an obedient model says."""
    last = last_message(body)
    for sign, items in (
        ("degrees Celsius", [Say("Oslo has 17 and Rome has 31 degrees.")]),
        ("both cities", [Call("temperature", '{"city": "Oslo"}'), Call("temperature", '{"city": "Rome"}')]),
        ("temperature in Oslo", [Call("temperature", '{"city": "Oslo"}')]),
        ("Oslo has 17", [Say('{"city": "Oslo", "degrees": 17}')]),
        ("Count from", [Say("1\n2\n3\n"), Hang()]),
        ("Search the web", [HostedTool("web_search", '{"query": "python"}', "https://example.com/a"), Say("In 1991.")]),
        ("shelf 5", [Say("35"), ScriptedUsage(input=5000, output=5, cached=4500)]),
    ):
        if sign in last:
            return [*items]
    return [Say("turtle")]


def plan(provider: Provider, folder: Path, cap: float = 1.0, models: Sequence[str] = (OPENAI, ANTHROPIC)) -> Plan:
    addresses = {"openai": f"{provider.url}/v1", "anthropic": f"{provider.url}/v1", "compatible": f"{provider.url}/v1"}
    return Plan(models, cap, folder, addresses)


def script(provider: Provider, step: Callable[[JsonObject], Sequence[Item]]) -> None:
    for name in ("gpt-5.2", "claude-opus-5"):
        provider.script(name, [step, step, step])


def files_in(folder: Path) -> list[str]:
    return [file.read_text("utf-8") for file in folder.rglob("*") if file.is_file()]


def states(report: ModelReport) -> dict[str, str]:
    return {chapter.name: chapter.state for chapter in report.chapters}


async def test_an_obedient_model_passes_every_chapter_and_leaves_cassettes(provider: Provider, tmp_path: Path) -> None:
    script(provider, answer)
    report = await run(plan(provider, tmp_path), ENVIRON)
    assert [states(model) for model in report.models] == [dict.fromkeys(CHAPTERS, "passed")] * 2
    assert not provider.refusals
    assert report.requests == provider.requests
    assert 0 < report.spent < report.cap
    cassettes = files_in(tmp_path)
    assert len(cassettes) == 2 * len(CHAPTERS)
    assert all(Recording.load(text.encode()) for text in cassettes)
    report.write(tmp_path, [])
    assert any(f"# Live vendors, {report.at:%Y-%m-%d}" in text for text in files_in(tmp_path))


async def test_no_request_is_sent_that_could_exceed_the_cap(provider: Provider, tmp_path: Path) -> None:
    script(provider, answer)
    report = await run(plan(provider, tmp_path, cap=0.02, models=[ANTHROPIC]), ENVIRON)
    assert report.spent <= report.cap
    found = states(report.models[0])
    assert found["text"] == "passed"
    assert found["cache"] == "not paid"
    assert provider.requests == report.requests < 10


def test_what_is_set_aside_counts_until_it_is_settled() -> None:
    spend = Spend(1.0)
    spend.reserve(0.6)
    with pytest.raises(CapReached, match="raise --cap"):
        spend.reserve(0.5)
    spend.settle(0.6, 0.1)
    spend.reserve(0.5)
    spend.settle(0.5, None)  # it was cancelled: nobody knows its cost
    assert (round(spend.spent, 6), round(spend.set_aside, 6)) == (0.6, 0.0)


async def test_an_error_of_a_vendor_is_reported_and_the_next_model_is_asked(provider: Provider, tmp_path: Path) -> None:
    script(provider, answer)
    provider.script("gpt-5.2", [[Status(401)]])
    report = await run(plan(provider, tmp_path), ENVIRON)
    first, second = report.models
    assert (first.chapters[0].state, {each.state for each in first.chapters[1:]}) == ("failed", {"skipped"})
    assert first.chapters[0].note.startswith("key: ")
    assert first.chapters[0].dollars == 0.0
    assert states(second) == dict.fromkeys(CHAPTERS, "passed")
    assert report.has_failed


async def test_a_vendor_that_fails_once_fails_one_chapter(provider: Provider, tmp_path: Path) -> None:
    script(provider, lambda body: [Status(500)] if "both cities" in last_message(body) else answer(body))
    report = await run(plan(provider, tmp_path, models=[OPENAI]), ENVIRON)
    assert [name for name, state in states(report.models[0]).items() if state != "passed"] == ["parallel calls"]
    assert report.models[0].chapters[2].note.startswith("server: ")


async def test_a_model_without_a_price_is_asked_only_if_that_is_allowed(provider: Provider, tmp_path: Path) -> None:
    provider.script("unheard-of", [answer, answer, answer])
    wanted = plan(provider, tmp_path, models=["openai:unheard-of"])
    report = await run(wanted, ENVIRON)
    assert "--allow-unpriced" in report.models[0].refused
    assert provider.requests == 0
    allowed = Plan(wanted.models, wanted.cap, tmp_path, wanted.addresses, allow_unpriced=True)
    assert states((await run(allowed, ENVIRON)).models[0])["text"] == "passed"


async def test_a_key_that_a_model_repeats_is_in_no_file(provider: Provider, tmp_path: Path) -> None:
    leaks = " ".join(f"{name}={value}" for name, value in ENVIRON.items())
    script(provider, lambda body: [Say(f"turtle {leaks} sk-proj-abcdefghijklmnop1234")])
    report = await run(plan(provider, tmp_path), ENVIRON)
    report.write(tmp_path, secrets_of(ENVIRON))
    texts = files_in(tmp_path)
    assert len(texts) > len(CHAPTERS)
    assert any(REDACTED in text for text in texts)
    for secret in (*ENVIRON.values(), "sk-proj-abcdefghijklmnop1234"):
        assert not any(secret in text for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "the key sk-ant-api03-abcdefghijklmnopqrst is wrong",
        "Authorization: Bearer abcdefghijklmnop.qrst",
        "AKIAABCDEFGHIJKLMNOP",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "org-abcdefghijklmnop has no credit",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0xxx.abc-DEF",
        "a b/c+d=secret",
        "YSBiL2MrZD1zZWNyZXQ",  # the same in base64
        "a%20b%2Fc%2Bd%3Dsecret",
    ],
)
def test_keys_tokens_and_accounts_are_removed_in_any_form(text: str) -> None:
    redacted = redact(text, secrets_of({"SOME_API_KEY": "a b/c+d=secret", "HOME": "/home/ada"}))
    assert REDACTED in redacted
    assert "secret" not in redacted


def test_words_stay() -> None:
    text = "turtle /home/ada user-friendly gpt-5.2 toolu_01YAQx2P3ZfbQaGa0XqcBLmX"
    assert redact(text, secrets_of({"HOME": "/home/ada", "A_KEY": "turt"})) == text


def test_the_models_are_those_of_the_keys(tmp_path: Path) -> None:
    assert models_of(ENVIRON) == [ANTHROPIC, OPENAI]
    options = parse(["--cap", "0.5", "--base-url", "openai=http://127.0.0.1:1/v1", "--out", str(tmp_path)], ENVIRON)
    assert (options.cap, options.addresses) == (0.5, {"openai": "http://127.0.0.1:1/v1"})
    with pytest.raises(SystemExit):
        parse(["--base-url", "nobody=http://127.0.0.1"], ENVIRON)


def test_a_note_cannot_break_the_table() -> None:
    import datetime

    chapter = Chapter("text", "failed", "a | b\nc")
    report = LiveReport(
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), 1.0, 0.0, 0, [ModelReport("m", "", [chapter])]
    )
    assert "a \\| b c" in report.as_markdown()
