"""Refusals contract of a model: errors say who must act, retries happen where they may help, and API keys stay
secret.
"""

from __future__ import annotations

import asyncio
import logging
import socket

import msgspec
import pytest

from everturn.core.parts import Usage
from everturn.errors import ConfigError
from everturn.models.retry import FallbackModel, RetryPolicy
from everturn.testing.contracts.model.bench import (
    AwaitedStep,
    ModelBench,
    ModelTestBench,
    answer_of,
    send_and_wait,
    send_expecting_error,
)
from everturn.testing.provider import InBandError, Raw, Say, Status

KEY = "sk-live-0123456789abcdef"
# A client that waits that long has ignored the provider's retry-after
PATIENT = RetryPolicy(attempts=3, initial_delay=60.0, max_delay=60.0)


def error(message: str, code: str = "", kind: str = "invalid_request_error") -> str:
    """The body of an error, as most providers write it."""
    return msgspec.json.encode({"error": {"message": message, "type": kind, "code": code or None}}).decode()


TOO_LONG = {
    "OpenAI": error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001."),
    "OpenAI's code": error("Your input is too much.", "context_length_exceeded"),
    "Anthropic": error("prompt is too long: 210000 tokens > 200000 maximum"),
    "Google": error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    "llama.cpp": error("the request exceeds the available context size. try increasing the context size"),
    "vLLM": error("This model's maximum context length is 4096 tokens. Please reduce the length of the messages."),
}
NO_MONEY = {
    "OpenAI": Status(429, error("You exceeded your current quota, please check your plan.", "insufficient_quota")),
    "Anthropic": Status(400, error("Your credit balance is too low to access the Anthropic API.")),
    "DeepSeek": Status(402, error("Insufficient Balance")),
}


def dead_url() -> str:
    """An address where no server listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


class RefusalsContract(ModelBench):
    """A refused request has a clear error; it is retried where that is possible and nothing has been streamed."""

    @pytest.mark.parametrize(
        ("status", "kind"),
        [(400, "request"), (401, "key"), (402, "quota"), (403, "key"), (413, "request"), (422, "request")],
    )
    async def test_a_status_that_will_not_pass_is_told_at_once(
        self, bench: ModelTestBench, status: int, kind: str
    ) -> None:
        chat = bench.chat([Status(status)], [Say("Too late.")])

        caught = await send_expecting_error(chat)

        assert caught.kind == kind
        assert len(bench.seen) == 1

    async def test_an_unknown_model_is_named(self, bench: ModelTestBench) -> None:
        chat = bench.open(bench.connect("nobody-knows-me"))

        caught = await send_expecting_error(chat)

        assert caught.kind == "unknown_model"
        assert "nobody-knows-me" in str(caught)

    async def test_what_the_provider_says_is_in_the_error(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Status(400, error("messages[3].content: that is not how we do it"))])

        assert "that is not how we do it" in str(await send_expecting_error(chat))

    async def test_a_parameter_that_is_unknown_is_refused_by_the_provider_and_not_by_us(
        self, bench: ModelTestBench
    ) -> None:
        chat = bench.chat([Say("Never.")])

        caught = await send_expecting_error(chat, params={"no_such_option": 1})

        assert caught.kind == "request"
        assert "no_such_option" in str(caught)
        assert len(bench.provider.refusals) == 1
        bench.provider.reset()

    @pytest.mark.parametrize("body", TOO_LONG.values(), ids=TOO_LONG)
    async def test_a_conversation_that_is_too_long_is_called_that(self, bench: ModelTestBench, body: str) -> None:
        assert (await send_expecting_error(bench.chat([Status(400, body)]))).kind == "context"

    async def test_a_conversation_that_leaves_no_room_for_an_answer_is_called_too_long(
        self, bench: ModelTestBench
    ) -> None:
        text = "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length"

        assert (await send_expecting_error(bench.chat([Status(400, error(text))]))).kind == "context"

    @pytest.mark.parametrize("status", NO_MONEY.values(), ids=NO_MONEY)
    async def test_an_account_without_money_is_not_asked_again(self, bench: ModelTestBench, status: Status) -> None:
        assert (await send_expecting_error(bench.chat([status], [Say("Too late.")]))).kind == "quota"
        assert len(bench.seen) == 1

    async def test_a_redirect_is_not_followed(self, bench: ModelTestBench) -> None:
        where = f"{dead_url()}/elsewhere"
        chat = bench.chat([Status(307, headers={"location": where})])

        caught = await send_expecting_error(chat)

        assert caught.kind == "request"
        assert where in str(caught)

    # Retries ------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
    async def test_a_status_that_may_pass_is_asked_again(self, bench: ModelTestBench, status: int) -> None:
        chat = bench.chat([Status(status)], [Say("Now.")])

        assert (await send_and_wait(chat)).text == "Now."
        assert [seen.status for seen in bench.seen] == [status, 200]

    @pytest.mark.parametrize("headers", [{"retry-after-ms": "5"}, {"retry-after": "0.005"}, {"Retry-After": "0"}])
    async def test_the_wait_is_as_long_as_the_provider_asks(
        self, bench: ModelTestBench, headers: dict[str, str]
    ) -> None:
        chat = bench.open(bench.model([Status(429, headers=headers)], [Say("Now.")], retry=PATIENT))

        assert (await send_and_wait(chat)).text == "Now."
        assert len(bench.seen) == 2

    async def test_a_wait_that_is_too_long_is_told_at_once(self, bench: ModelTestBench) -> None:
        retry = RetryPolicy(max_retry_after=10.0)
        chat = bench.open(bench.model([Status(429, headers={"retry-after": "3600"})], retry=retry))

        assert (await send_expecting_error(chat)).kind == "rate"
        assert len(bench.seen) == 1

    @pytest.mark.parametrize(("status", "kind"), [(429, "rate"), (500, "server"), (503, "server")])
    async def test_who_is_always_refused_is_told_after_the_last_try(
        self, bench: ModelTestBench, status: int, kind: str
    ) -> None:
        chat = bench.chat(*[[Status(status)]] * 3, [Say("I am back.")])

        assert (await send_expecting_error(chat)).kind == kind
        assert len(bench.seen) == 3
        assert (await send_and_wait(chat)).text == "I am back."

    async def test_a_second_try_asks_the_very_same(self, bench: ModelTestBench) -> None:
        await send_and_wait(bench.chat([Status(500)], [Status(503)], [Say("Now.")], system="Be brief."))

        assert len({msgspec.json.encode(seen.body) for seen in bench.seen}) == 1
        assert len(bench.seen) == 3

    async def test_an_error_before_the_first_word_is_worth_another_try(self, bench: ModelTestBench) -> None:
        chat = bench.chat([InBandError()], [Say("Now.")])

        result = await send_and_wait(chat)

        assert (result.text, len(bench.seen)) == ("Now.", 2)
        assert result.usage == Usage(100, 200)  # of the attempt that answered

    async def test_where_nobody_listens_the_error_says_where_that_is(self, bench: ModelTestBench) -> None:
        url = dead_url()

        caught = await send_expecting_error(bench.open(bench.connect("model", url=url)))

        assert caught.kind == "network"
        assert url in str(caught)

    # Invalid answers ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "raw",
        [
            Raw(b"<html><body>Welcome to the router</body></html>", "text/html"),
            Raw(b"data: {this is no JSON}\n\n"),
            Raw(b"data: [1, 2, 3]\n\n"),
            Raw(b"\xff\xfe\x00\x01" * 100, "application/octet-stream"),
        ],
        ids=["a web page", "broken JSON", "a list", "bytes"],
    )
    async def test_what_is_no_stream_is_shown_and_not_tried_again(self, bench: ModelTestBench, raw: Raw) -> None:
        chat = bench.chat([raw], [Say("Too late.")])

        assert (await send_expecting_error(chat)).kind == "response"
        assert len(bench.seen) == 1

    async def test_a_gateway_that_answers_with_a_page_is_a_server_in_trouble(self, bench: ModelTestBench) -> None:
        page = Status(502, "<html><h1>502 Bad Gateway</h1></html>", {"content-type": "text/html"})

        caught = await send_expecting_error(bench.chat(*[[page]] * 3))

        assert caught.kind == "server"
        assert "Bad Gateway" in str(caught)

    async def test_an_answer_without_a_byte_is_asked_for_again(self, bench: ModelTestBench) -> None:
        assert (await send_and_wait(bench.chat([Raw(b"")], [Say("Now.")]))).text == "Now."

    async def test_an_answer_without_end_is_ended(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(b"data: " + b"x" * 3_000_000)])

        assert (await send_expecting_error(chat)).kind == "limit"

    # Fallback models ----------------------------------------------------------------------------------------------

    async def test_another_model_answers_when_the_first_one_fails_without_a_word(self, bench: ModelTestBench) -> None:
        first = bench.model([Status(503)], name="first")
        second = bench.model([Say("I am the second.")], name="second")
        chat = bench.open(FallbackModel(first, second))

        assert (await send_and_wait(chat)).text == "I am the second."
        assert [seen.model for seen in bench.seen] == [self.prefix + name for name in ("first",) * 3 + ("second",)]

    async def test_no_other_model_answers_once_the_first_one_has_spoken(self, bench: ModelTestBench) -> None:
        first = bench.model([Say("I was about"), InBandError()], name="first")
        chat = bench.open(FallbackModel(first, bench.model([Say("I am the second.")], name="second")))

        await send_expecting_error(chat)

        assert [seen.model for seen in bench.seen] == [self.prefix + "first"]
        assert (await answer_of(chat)).text == "I was about"

    # API keys -----------------------------------------------------------------------------------------------------

    async def test_a_key_reaches_the_provider_and_nobody_else(
        self, bench: ModelTestBench, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        model = bench.model([Status(500)], [Status(401)], key=KEY)
        chat = bench.open(model)

        caught = await send_expecting_error(chat)

        assert any(KEY in value for value in bench.seen[0].headers.values())
        events = await chat.app.store.events(chat.session)
        for text in (repr(model), str(model), repr(caught), str(caught), repr(events), caplog.text):
            assert KEY not in text

    async def test_a_provider_that_repeats_the_key_is_not_quoted_with_it(self, bench: ModelTestBench) -> None:
        body = error(f"Incorrect API key provided: {KEY}. You can find it in the settings.", "invalid_api_key")
        chat = bench.open(bench.model([Status(401, body)], key=KEY))

        caught = await send_expecting_error(chat)

        assert caught.kind == "key"
        assert KEY not in str(caught)
        assert KEY not in repr(await chat.app.store.events(chat.session))

    async def test_a_password_in_a_base_url_is_not_shown(self, bench: ModelTestBench) -> None:
        url = dead_url().replace("//", "//ada:hunter2@")
        try:
            model = bench.connect("model", url=url, key="")
            text = f"{model!r} {await send_expecting_error(bench.open(model))}"
        except ConfigError as refused:  # which is better still
            text = str(refused)

        assert "hunter2" not in text

    async def test_a_wait_for_another_try_can_be_cancelled(self, bench: ModelTestBench) -> None:
        step = AwaitedStep([Status(503)])
        chat = bench.open(bench.model(step, [Say("Too late.")], retry=PATIENT))
        turn = await chat.send("Hi.")
        await step.wait()
        await bench.provider.wait_idle()

        await turn.cancel()

        async with asyncio.timeout(5):
            await turn
        assert len(bench.seen) == 1
