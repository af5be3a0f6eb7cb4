"""Amazon Bedrock keeps the contract of a model; what a stream of frames and the Converse API say otherwise is told here."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from tests.models.test_conformance import NO_FILTER

from everturn.core.parts import Finish
from everturn.core.ports import Model
from everturn.models.prices import Price
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.testing.contracts import ProviderModelContract
from everturn.testing.contracts.model.bench import (
    ModelTestBench,
    RecordingTool,
    answer_of,
    send_and_wait,
    send_expecting_error,
)
from everturn.testing.contracts.model.history import BUDGET
from everturn.testing.provider import Raw, Say
from everturn.testing.provider.render.event_frames import event_frame, frame


def events(**bodies: object) -> list[bytes]:
    return [event_frame(name.rstrip("_"), msgspec.json.encode(body)) for name, body in bodies.items()]


HELLO = events(
    messageStart={"role": "assistant"},
    contentBlockDelta={"contentBlockIndex": 0, "delta": {"text": "Hello."}},
    contentBlockStop={"contentBlockIndex": 0},
    messageStop={"stopReason": "end_turn"},
)


class TestBedrock(ProviderModelContract):
    format = "converse"
    prefix = "anthropic.claude-sonnet-4-5-"
    counts = frozenset({"cached", "written"})
    finishes: Mapping[str, Finish] = {**NO_FILTER, "content_filter": "content_filter", "refusal": "content_filter"}
    thinking = BUDGET
    uncounted = b"".join(HELLO)

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"bedrock:{model}", base_url=url, key=key, price=price, retry=retry, environ={})

    async def test_parameters_pass_as_they_are(self, bench: ModelTestBench) -> None:
        await send_and_wait(bench.chat([Say("Fine.")]), params={"temperature": 0.25, "top_p": 0.5, "top_k": 7})

        config = bench.seen[0].body["inferenceConfig"]
        assert (config["temperature"], config["topP"]) == (0.25, 0.5)
        assert bench.seen[0].body["additionalModelRequestFields"] == {"top_k": 7}

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_the_choice_of_a_tool_is_said_in_the_words_of_the_format(
        self, bench: ModelTestBench, choice: str
    ) -> None:
        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool()]), params={"tool_choice": choice})

        sent = bench.wire_request()
        assert (sent.choice, sent.tools) == ((None, []) if choice == "none" else (choice, ["look"]))

    async def test_an_answer_that_ends_without_saying_so_is_cut_off(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(HELLO[0])], [Say("Now.")], [Raw(b"".join(HELLO[:2]))], [Say("And now.")])

        assert (await send_and_wait(chat)).text == "Now."  # nothing had been streamed yet
        assert (await send_expecting_error(chat)).kind == "truncated"
        assert (await answer_of(chat)).text == "Hello."
        assert (await send_and_wait(chat)).text == "And now."

    async def test_an_answer_without_end_is_ended(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(frame({}, bytes(5_000_000)))])

        assert (await send_expecting_error(chat)).kind == "limit"

    async def test_an_answer_whose_frame_is_damaged_is_kept_as_far_as_it_came(self, bench: ModelTestBench) -> None:
        damaged = HELLO[2][:-1] + bytes([HELLO[2][-1] ^ 1])
        chat = bench.chat([Raw(HELLO[0] + HELLO[1] + damaged + HELLO[3])], [Say("Now.")])

        caught = await send_expecting_error(chat)

        assert (caught.kind, "damaged" in str(caught)) == ("truncated", True)
        assert (await answer_of(chat)).text == "Hello."
        assert (await send_and_wait(chat)).text == "Now."

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("throttlingException", "rate"),
            ("internalServerException", "server"),
            ("modelStreamErrorException", "server"),
            ("serviceUnavailableException", "server"),
            ("validationException", "request"),
            ("someNewException", "server"),
        ],
    )
    async def test_an_exception_in_the_stream_has_the_kind_of_its_status(
        self, bench: ModelTestBench, name: str, kind: str
    ) -> None:
        message = "Too many tokens, please wait." if kind == "rate" else "Not like this."
        body = msgspec.json.encode({"message": message})
        exception_frame = frame({":exception-type": name, ":message-type": "exception"}, body)
        chat = bench.chat([Raw(HELLO[0] + HELLO[1] + exception_frame)])

        assert (await send_expecting_error(chat)).kind == kind

    async def test_an_error_without_a_shape_is_an_error_too(self, bench: ModelTestBench) -> None:
        error_frame = frame(
            {":message-type": "error", ":error-code": "InternalError", ":error-message": "It broke."}, b""
        )
        caught = await send_expecting_error(bench.chat([Raw(HELLO[0] + HELLO[1] + error_frame)]))

        assert "It broke." in str(caught)
