"""What goes out, in three formats: the request side of the quirk list, and that no history is refused."""

import base64
import functools
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.messages import assistant_message, tool_message

from everturn import Chat
from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.context.documents import SectionText, dump_document
from everturn.core.history import NO_RESULT
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.errors import ModelError, TurnError
from everturn.models.formats.files import as_base64, as_data_url, as_note, as_text, file_kind, fit_documents
from everturn.models.formats.tool_names import CallIds, IdPolicy, ToolNames
from everturn.models.formats.tool_schemas import tool_schema, with_plain_properties
from everturn.models.formats.valid_history import EMPTY_TEXT, repair_history, result_text
from everturn.models.profile import Origin, Profile
from everturn.models.registry import get_model as model_named
from everturn.models.vendors import VENDORS
from everturn.models.wire_formats import get_wire_format
from everturn.testing.provider.signatures import seal_reasoning, sign
from everturn.testing.provider.strict.request import check as strict

Json = dict[str, Any]
TOOLS = [ToolSpec("look", "Looks.", {"type": "object", "properties": {"q": {"type": "string"}}})]
THREE = ["openai-chat", "anthropic", "openai"]


def user(*parts: RequestPart | str) -> RequestMessage:
    return RequestMessage("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def call(id: str = "c1", provider_id: str = "", **more: Any) -> RequestCall:
    return RequestCall(id, "look", '{"q":"x"}', provider_id=provider_id, **more)


def result(id: str = "c1", text: str = "found", **more: Any) -> RequestResult:
    return RequestResult(id, "look", text, **more)


def build(vendor: str | Profile, *messages: RequestMessage, model: str = "m", **request: Any) -> Json:
    """The body as it goes out, which the provider of its format takes."""
    profile = (VENDORS[vendor] if isinstance(vendor, str) else vendor).for_model(model)
    model_request = ModelRequest(model, request.pop("system", ""), list(messages), request.pop("tools", TOOLS), {})
    for name, value in request.items():
        setattr(model_request, name, value)
    origin = Origin(profile.vendor, model, profile.key)
    body = json.loads(get_wire_format(profile.format).build(model_request, profile, origin).body)
    if profile.vendor in THREE:
        strict(profile.format, body, profile.headers)
    return body


def sealed(vendor: str, payload: object, model: str = "m") -> Opaque:
    return Opaque(f"{vendor}:{model}", encode_canonical(payload))


# The quirk list -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vendor", "filler"), [("deepseek", ""), ("kimi", "(not kept)")])
def test_31_reasoning_goes_back_beside_the_calls_it_led_to(vendor: str, filler: str) -> None:
    body = build(
        vendor,
        user("hi"),
        assistant_message(ReasoningPart("I should look."), "Looking.", call("c1")),
        tool_message(result("c1")),
        assistant_message(call("c2")),
        tool_message(result("c2")),
        assistant_message(ReasoningPart("I know."), "It is so."),
        user("thanks"),
    )

    first, second, last = (message for message in body["messages"] if message["role"] == "assistant")
    assert first["reasoning_content"] == "I should look."
    assert second["reasoning_content"] == filler
    assert "reasoning_content" not in last


def test_31_reasoning_stays_away_where_nobody_asks_for_it() -> None:
    body = build("groq", user("hi"), assistant_message(ReasoningPart("hm"), call()), tool_message(result()))

    assert "hm" not in json.dumps(body)


def test_32_thinking_goes_back_verbatim_with_its_seal() -> None:
    text = " hm \n"
    body = build(
        "anthropic",
        user("hi"),
        assistant_message(
            ReasoningPart(text, sealed("anthropic", {"signature": sign("m", text)})),
            ReasoningPart(
                "", sealed("anthropic", {"type": "redacted_thinking", "data": seal_reasoning("red", "m", "secret")})
            ),
            ReasoningPart("", sealed("anthropic", {"signature": sign("m", "")})),
            call(),
        ),
        tool_message(result()),
        params={"thinking": {"type": "adaptive"}},
    )

    assert body["messages"][1]["content"][:3] == [
        {"type": "thinking", "thinking": text, "signature": sign("m", text)},
        {"type": "redacted_thinking", "data": seal_reasoning("red", "m", "secret")},
        {"type": "thinking", "thinking": "", "signature": sign("m", "")},
    ]


@pytest.mark.parametrize("opaque", [None, sealed("anthropic", {"signature": "s"}, "another"), sealed("openai", {})])
def test_33_thinking_without_a_seal_of_this_model_is_dropped(opaque: Opaque | None) -> None:
    body = build("anthropic", user("hi"), assistant_message(ReasoningPart("hm", opaque), "so"), user("and?"))

    assert body["messages"][1]["content"] == [{"type": "text", "text": "so"}]


def test_33_thinking_is_not_asked_for_in_the_middle_of_calls_that_lost_theirs() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    calling = [user("hi"), assistant_message(ReasoningPart("cut off"), call()), tool_message(result())]

    assert build("anthropic", *calling, params=thinking)["thinking"] == {"type": "disabled"}
    later = build("anthropic", *calling, assistant_message("so"), user("and?"), params=thinking)
    assert later["thinking"] == thinking["thinking"]


def test_34_what_is_sealed_to_a_call_goes_back_with_it() -> None:
    extra = {"google": {"thought_signature": "AA"}}
    calling = assistant_message(
        call("c1", opaque=sealed("gemini-chat", extra)), call("c2", opaque=sealed("openai", extra))
    )
    body = build("gemini-chat", user("hi"), calling, tool_message(result("c1"), result("c2")))

    first, second = body["messages"][1]["tool_calls"]
    assert first["extra_content"] == extra
    assert "extra_content" not in second


def test_15_sealed_thoughts_go_back_as_they_came() -> None:
    details = [{"type": "reasoning.encrypted", "data": "AA", "index": 0}]
    answer = assistant_message(ReasoningPart("hm", sealed("openrouter", details)), "so")

    assert build("openrouter", user("hi"), answer, user("and?"))["messages"][1]["reasoning_details"] == details
    assert "reasoning_details" not in build("groq", user("hi"), answer, user("and?"))["messages"][1]


def test_35_reasoning_stands_in_front_of_what_it_led_to_and_has_no_id() -> None:
    item = {"type": "reasoning", "summary": [], "encrypted_content": seal_reasoning("enc", "m", "hm")}
    body = build(
        "openai",
        user("hi"),
        assistant_message(ReasoningPart("hm", sealed("openai", item)), call()),
        tool_message(result()),
        assistant_message("so", ReasoningPart("cut off before it led to anything", sealed("openai", item))),
        user("and?"),
    )

    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        *("user", "reasoning", "function_call", "function_call_output", "assistant", "user")
    ]
    assert body["input"][1] == item
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])


def test_36_the_ids_of_kimi_are_echoed_unchanged() -> None:
    body = build(
        "kimi",
        user("hi"),
        assistant_message(call("c1", provider_id="functions.look:7"), call("c2"), call("c3", provider_id="call_abc")),
        tool_message(result("c1"), result("c2"), result("c3")),
    )

    call_ids = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert call_ids == ["functions.look:7", "functions.look:1", "functions.look:2"]
    assert [message["tool_call_id"] for message in body["messages"][2:]] == call_ids


def test_37_the_ids_of_mistral_have_nine_letters_and_digits() -> None:
    calling = [
        user("hi"),
        assistant_message(call("turn-1-1"), call("turn-1-2")),
        tool_message(result("turn-1-1"), result("turn-1-2")),
    ]
    body = build("mistral", *calling)

    call_ids = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in call_ids)
    assert len(set(call_ids)) == 2
    assert [message["tool_call_id"] for message in body["messages"][2:]] == call_ids
    assert build("mistral", *calling, user("and?"))["messages"][1]["tool_calls"] == body["messages"][1]["tool_calls"]


def test_37_between_a_result_and_a_user_mistral_hears_the_assistant() -> None:
    body = build("mistral", user("hi"), assistant_message(call()), tool_message(result()), user("stop"))

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert "stream_options" not in body


def test_38_anthropic_is_sent_nothing_blank() -> None:
    body = build(
        "anthropic",
        user("hi"),
        assistant_message("", " \n", call()),
        tool_message(result(text="", is_error=True)),
        assistant_message("so \n"),
        user("", "and?", " "),
        system=" ",
    )

    assert [[block["type"] for block in message["content"]] for message in body["messages"]] == [
        *(["text"], ["tool_use"], ["tool_result"], ["text"], ["text"])
    ]
    assert body["messages"][2]["content"][0]["content"] == EMPTY_TEXT
    assert body["messages"][3]["content"][0]["text"] == "so"
    assert "system" not in body


@pytest.mark.parametrize("vendor", THREE)
def test_39_what_an_abort_left_behind_is_repaired(vendor: str) -> None:
    body = build(
        vendor,
        user("hi"),
        tool_message(result("orphan")),
        assistant_message("a", call("c1"), call("c2"), call("c1")),
        user("stop"),
        tool_message(result("c2", "late"), result("c2", "twice")),
        assistant_message(call("c1"), "again"),
        user("and?"),
    )

    encoded = json.dumps(body)
    assert encoded.count("late") == encoded.count(NO_RESULT) == 1
    assert "twice" not in encoded
    assert "found" not in encoded
    assert pairs(VENDORS[vendor].format, body) == 2


@pytest.mark.parametrize(
    ("vendor", "field"),
    [
        ("openai-chat", "max_completion_tokens"),
        ("groq", "max_completion_tokens"),
        ("deepseek", "max_tokens"),
        ("anthropic", "max_tokens"),
        ("openai", "max_output_tokens"),
    ],
)
def test_43_the_limit_of_an_answer_is_called_what_the_vendor_calls_it(vendor: str, field: str) -> None:
    body = build(vendor, user("hi"), params={"max_tokens": 99})

    assert {name for name in body if name.startswith("max_")} == {field}
    assert body[field] == 99


def test_43_who_must_be_told_a_limit_is_told_one() -> None:
    assert build("anthropic", user("hi"))["max_tokens"] == 16_384
    assert build("anthropic", user("hi"), model="claude-3-opus-20240229")["max_tokens"] == 4096
    assert build("anthropic", user("hi"), model="claude-3-5-sonnet-latest")["max_tokens"] == 8192
    assert build("anthropic", user("hi"), model="claude-3-haiku-20240307")["max_tokens"] == 4096
    assert build("openai", user("hi"), params={"max_tokens": 1})["max_output_tokens"] == 16
    assert not [name for name in build("openai-chat", user("hi")) if name.startswith("max_")]


# Parameters -----------------------------------------------------------------------------------------------------------


FIVE = [*THREE, "gemini", "ollama"]
OURS: list[tuple[str, object, str]] = [
    ("tools", [{"type": "web_search_20250305", "name": "web_search"}], "vendor's own tools are not supported yet"),
    ("tools", [], r"Chat\(tools="),
    ("model", "other", r"send\(model="),
    ("messages", [], "what you send"),
    ("input", [], "what you send"),
    ("system", "", r"Chat\(system="),
    ("instructions", "", r"Chat\(system="),
    ("stream", False, "always streamed"),
]


@pytest.mark.parametrize("vendor", FIVE)
@pytest.mark.parametrize(("name", "value", "hint"), OURS)
def test_a_parameter_that_a_request_would_overwrite_is_refused(
    vendor: str, name: str, value: object, hint: str
) -> None:
    with pytest.raises(ModelError, match=f"^'{name}' cannot be given in params: .*{hint}") as raised:
        build(vendor, user("hi"), params={"temperature": 1, name: value})
    assert (raised.value.kind, raised.value.retryable) == ("request", False)


@pytest.mark.parametrize(
    ("vendor", "name"),
    [("gemini", "contents"), ("gemini", "systemInstruction"), ("gemini", "system_instruction"), ("openai", "store")],
)
def test_a_parameter_that_one_format_would_overwrite_is_refused_there(vendor: str, name: str) -> None:
    with pytest.raises(ModelError, match=f"^'{name}' cannot be given in params"):
        build(vendor, user("hi"), params={name: True})


@pytest.mark.parametrize("vendor", THREE)
def test_to_say_what_is_so_anyway_is_no_mistake(vendor: str) -> None:
    assert build(vendor, user("hi"), params={"stream": True})["stream"] is True


def test_to_say_that_a_vendor_keeps_nothing_is_no_mistake() -> None:
    assert build("openai", user("hi"), params={"store": False})["store"] is False


async def test_a_vendors_own_tools_end_the_turn_with_the_reason() -> None:
    turn = await Chat(model_named("openai:m", key="k")).send("hi", params={"tools": [{"type": "web_search"}]})
    with pytest.raises(TurnError, match="'tools' cannot be given in params") as raised:
        await turn
    assert raised.value.kind == "request"


@pytest.mark.parametrize(
    ("vendor", "choices"),
    [
        ("openai-chat", ["required", {"type": "function", "function": {"name": "look"}}]),
        ("anthropic", [{"type": "any"}, {"type": "tool", "name": "look"}]),
        ("openai", ["required", {"type": "function", "name": "look"}]),
    ],
)
def test_a_choice_of_tools(vendor: str, choices: list[object]) -> None:
    for wanted, choice in zip(("required", "look"), choices, strict=True):
        assert build(vendor, user("hi"), params={"tool_choice": wanted})["tool_choice"] == choice
    assert "tool_choice" not in build(vendor, user("hi"), params={"tool_choice": "required"}, tools=[])


@pytest.mark.parametrize("vendor", THREE)
def test_a_schema_for_the_answer(vendor: str) -> None:
    schema = {"title": "The Answer!", "type": "object", "properties": {}, "additionalProperties": False}
    encoded = json.dumps(build(vendor, user("hi"), params={"output_schema": schema}))

    assert encoded.count(json.dumps(schema)) == 1
    assert ("TheAnswer" in encoded) == (vendor != "anthropic")


def test_anthropic_marks_at_most_four_places_for_its_cache() -> None:
    long = [message for _ in range(5) for message in (user("hi"), assistant_message("so"))]
    body = build("anthropic", *long, user("and?"), system="Be brief.")

    assert json.dumps(body).count("cache_control") == 4


def test_anthropic_marks_nothing_where_nobody_wants_a_cache() -> None:
    assert "cache_control" not in json.dumps(build("anthropic", user("hi"), params={"cache": False}))


def test_anthropic_is_told_how_long_to_keep_what_is_cached() -> None:
    body = build("anthropic", user("hi"), system="Be brief.", params={"cache": "1h"})

    assert json.dumps(body).count("cache_control") == 3
    assert body["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache" not in body
    assert "cache" not in build("openai", user("hi"), params={"cache": "1h"})  # it caches by itself
    with pytest.raises(ModelError, match="'5m', '1h'"):
        build("anthropic", user("hi"), params={"cache": "2h"})


def test_a_lifetime_that_a_vendor_does_not_have_is_the_longest_below_it() -> None:
    marked = build("anthropic", user("hi"), params={"cache": "24h"})
    assert marked["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    for vendor in ("openai", "openai-chat", "azure"):
        for lifetime in ("5m", "1h"):
            assert "prompt_cache_retention" not in build(
                vendor, user("hi"), model="gpt-5.2", params={"cache": lifetime}
            )
    with pytest.raises(ModelError, match="'24h'"):
        build("openai", user("hi"), params={"cache": "2h"})


@pytest.mark.parametrize("vendor", ["openai", "openai-chat", "azure", "azure-chat"])
def test_openai_has_the_key_of_the_conversation_unless_it_is_switched_off(vendor: str) -> None:
    assert build(vendor, user("hi"), cache_key="k")["prompt_cache_key"] == "k"
    assert "prompt_cache_key" not in build(vendor, user("hi"))
    assert "prompt_cache_key" not in build(vendor, user("hi"), cache_key="k", params={"cache": False})
    assert build(vendor, user("hi"), cache_key="k", params={"prompt_cache_key": "mine"})["prompt_cache_key"] == "mine"


@pytest.mark.parametrize("vendor", sorted(VENDORS.keys() - {"openai", "openai-chat", "azure", "azure-chat"}))
def test_no_other_vendor_has_the_key(vendor: str) -> None:
    assert not VENDORS[vendor].has_cache_key


@pytest.mark.parametrize(
    ("model", "is_kept"),
    [
        ("gpt-4.1", True),
        ("gpt-5", True),
        ("gpt-5.4-mini", True),
        ("gpt-5-mini", False),
        ("gpt-4o", False),
        ("o3", False),
    ],
)
def test_openai_keeps_a_prefix_for_a_day_where_the_model_can(model: str, is_kept: bool) -> None:
    body = build("openai", user("hi"), model=model, params={"cache": "24h"})
    assert body.get("prompt_cache_retention") == ("24h" if is_kept else None)
    assert "cache" not in body


def test_anthropic_is_told_of_tools_that_were_called_once() -> None:
    body = build("anthropic", user("hi"), assistant_message(call()), tool_message(result()), tools=[])

    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize("vendor", THREE)
def test_a_history_that_ends_with_the_models_own_words_is_led_on(vendor: str) -> None:
    for history in ([], [assistant_message("so")], [user("hi"), assistant_message("so")], [user("")]):
        body = build(vendor, *history)
        assert (body.get("messages") or body["input"])[-1]["role"] == "user"


# Any history ----------------------------------------------------------------------------------------------------------


def pairs(format: str, body: Json) -> int:
    """How many calls there are; each has one result, right behind it, and no result is without its call."""
    steps: list[tuple[list[str], list[str]]] = [([], [])]  # the calls of one message, and the results right behind it
    for kind, id in steps_of(format, body):
        if kind == "call":
            if steps[-1][1]:
                steps.append(([], []))
            steps[-1][0].append(id)
        elif kind == "result":
            steps[-1][1].append(id)
        elif steps[-1][0]:
            steps.append(([], []))
    call_ids = [id for calls, _ in steps for id in calls]
    for calls, answers in steps:
        assert sorted(calls) == sorted(answers)
    assert len(set(call_ids)) == len(call_ids)
    return len(call_ids)


def steps_of(format: str, body: Json) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if format == "responses":
        for item in body["input"]:
            kind = {"function_call": "call", "function_call_output": "result"}.get(item.get("type"), "other")
            if kind != "other" or item.get("role") == "user":  # a text may stand between a call and its result here
                found.append((kind, item.get("call_id", "")))
        return found
    for message in body["messages"]:
        if format == "chat":
            found += [("result", message["tool_call_id"])] if message["role"] == "tool" else [("other", "")]
            found += [("call", call["id"]) for call in message.get("tool_calls", ())]
            continue
        found += [("call", block["id"]) for block in message["content"] if block["type"] == "tool_use"]
        found += [
            ("result", block["tool_use_id"]) if block["type"] == "tool_result" else ("other", "")
            for block in message["content"]
            if message["role"] == "user"
        ]
    return found


TEXTS = st.sampled_from(["", " ", "\n", "hi", "so \n", "ü\u2028"])
IDS = st.sampled_from(["a", "b", "c", "t-1-1", "", "a b", "é" * 50])
NAMES = st.sampled_from(["look", "gone", "", "a b", "x" * 80])
FILES = [
    FilePart("png", "image/png", 3, "a.png"),
    FilePart("txt", "text/plain", 3),
    FilePart("gone", "image/png", 3),
    FilePart("pdf", "application/pdf", 3),
    FilePart("wav", "audio/wav", 3),
    FilePart("zip", "application/zip", 3, "z.zip"),
]
BLOBS = {"png": b"png", "txt": b"\xff txt", "pdf": b"%PDF", "wav": b"RIFF", "zip": b"PK"}


def thoughts(model: str) -> st.SearchStrategy[RequestPart]:
    """Reasoning with this model's seal, with another's, and with none."""

    def thought(vendor: str, text: str) -> ReasoningPart:
        payload: object = {
            "anthropic": {"signature": sign(model, text)},
            "openai": {"type": "reasoning", "summary": [], "encrypted_content": seal_reasoning("enc", model, text)},
        }.get(vendor, [{"type": "reasoning.text", "text": text}])
        return ReasoningPart(text, sealed(vendor, payload, model))

    mine = st.builds(thought, st.sampled_from(["anthropic", "openai", "openai-chat", "mistral"]), TEXTS)
    return mine | st.builds(ReasoningPart, TEXTS)


def parts(model: str) -> st.SearchStrategy[RequestPart]:
    file = st.sampled_from(FILES)
    return (
        st.builds(TextPart, TEXTS)
        | thoughts(model)
        | file
        | st.builds(NoticePart, st.just("hint"), TEXTS)
        | st.builds(
            RequestCall, IDS, NAMES, st.sampled_from(["{}", '{"q":"x"}']), provider_id=st.sampled_from(["", "g"])
        )
        | st.builds(RequestResult, IDS, NAMES, TEXTS, st.booleans(), st.lists(file, max_size=2).map(tuple))
    )


@functools.cache
def histories(model: str, tools: st.SearchStrategy[RequestPart]) -> st.SearchStrategy[list[RequestMessage]]:
    talk = st.builds(
        RequestMessage, st.sampled_from(["user", "assistant"]), st.lists(parts(model), max_size=5).map(tuple)
    )
    results = st.builds(RequestMessage, st.just("tool"), st.lists(tools, max_size=4).map(tuple))
    return st.lists(talk | results, max_size=7)


RESULTS = st.builds(RequestResult, IDS, NAMES, TEXTS, st.booleans())

KINDS: dict[str, tuple[Profile, str]] = {
    "chat": (VENDORS["openai-chat"], "m"),
    "mistral": (VENDORS["mistral"], "mistral-m"),
    "deepseek": (VENDORS["deepseek"], "deepseek-m"),
    "kimi": (VENDORS["kimi"], "kimi-m"),
    "messages": (VENDORS["anthropic"], "m"),
    "responses": (VENDORS["openai"], "m"),
    "alternate": (VENDORS["llamacpp"], "alternate-m"),
}


def check_any(kind: str, history: list[RequestMessage], tools: list[ToolSpec], params: Json) -> None:
    profile, model = KINDS[kind]
    request = ModelRequest(model, "", history, tools, params, BLOBS)
    body = json.loads(get_wire_format(profile.format).build(request, profile, Origin(profile.vendor, model)).body)
    pairs(profile.format, body)
    strict(profile.format, body, profile.headers)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "alternate"])
@given(data=st.data(), has_tools=st.booleans(), is_thinking=st.booleans())
def test_no_history_is_refused(kind: str, data: st.DataObject, has_tools: bool, is_thinking: bool) -> None:
    history = data.draw(histories(KINDS[kind][1], RESULTS))
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if is_thinking and kind == "messages" else {}

    check_any(kind, history, TOOLS if has_tools else [], thinking)


@given(histories("alternate-m", RESULTS))
def test_no_history_that_a_user_begins_is_refused_where_two_take_turns(history: list[RequestMessage]) -> None:
    check_any("alternate", [user("hi"), *history], TOOLS, {})


def test_a_history_that_the_assistant_begins_is_not_refused_where_two_take_turns() -> None:
    check_any("alternate", [assistant_message("Welcome."), user("hi")], TOOLS, {})


def test_what_a_plugin_changed_is_written_again() -> None:
    memo: dict[str, Any] = {}
    first = [user("hi"), assistant_message(call()), tool_message(result())]
    build("openai-chat", *first, memo=memo)

    more = build("openai-chat", *first, assistant_message(call("c2")), tool_message(result("c2")), memo=memo)
    assert [message["role"] for message in more["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]
    other = build("openai-chat", user("ho"), *first[1:], memo=memo)
    assert [message["content"] for message in other["messages"]] == ["ho", None, "found"]


@pytest.mark.parametrize("vendor", THREE)
def test_a_tools_message_may_hold_anything(vendor: str) -> None:
    build(vendor, user("hi"), assistant_message(call()), RequestMessage("tool", (result(), TextPart("and so on"))))


@pytest.mark.parametrize("vendor", THREE)
def test_half_a_character_can_be_sent(vendor: str) -> None:
    build(vendor, user("\ud800"))


# Tidy -----------------------------------------------------------------------------------------------------------------


@given(histories("m", RESULTS | st.builds(TextPart, TEXTS)))
@example([user("hi"), assistant_message(call()), tool_message(result(), result())])
def test_what_was_tidied_is_tidy(history: list[RequestMessage]) -> None:
    once = repair_history(history)

    if not any(
        type(part) is not RequestResult for message in history if message.role == "tool" for part in message.parts
    ):
        assert repair_history(once) is once
    assert all(message.parts for message in once)


def test_a_history_in_order_is_handed_on_untouched() -> None:
    history = [
        user("hi"),
        assistant_message("a", call("c1"), call("c2")),
        tool_message(result("c1"), result("c2")),
        assistant_message("b"),
    ]

    assert repair_history(history) is history


def test_a_result_is_found_by_its_id_wherever_it_stands() -> None:
    history = [tool_message(result("c2")), user("hi", result("c1", "mine")), assistant_message(call("c1"), call("c2"))]

    assert repair_history(history) == [
        user("hi"),
        assistant_message(call("c1"), call("c2")),
        tool_message(result("c1", "mine"), result("c2")),
    ]


def test_a_result_without_a_word_says_so() -> None:
    assert [result_text(result(text=text)) for text in ("", " \n", "x ")] == [EMPTY_TEXT, EMPTY_TEXT, "x "]


# Names ----------------------------------------------------------------------------------------------------------------


def named(*names: str) -> ToolNames:
    return ToolNames([ToolSpec(name, "", {}) for name in names])


def test_a_name_every_vendor_takes_is_left_alone() -> None:
    names = named("look_up-2", "x" * 64)

    assert (names.wire("look_up-2"), names.wire("x" * 64), names.ours) == ("look_up-2", "x" * 64, {})


@given(st.lists(st.text(max_size=70), unique=True))
@example(["a.b", "a b", "a_b", "", "unnamed"])
@example(["x" * 64, "x" * 65, "x" * 66])
def test_names_are_taken_by_every_vendor_and_lead_back(originals: list[str]) -> None:
    names = named(*originals)
    wire = [names.wire(name) for name in originals]

    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in wire)
    assert [names.ours.get(name, name) for name in wire] == originals
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", names.wire("never \ud800 heard of"))


@pytest.mark.parametrize(
    ("policy", "form"),
    [("ours", r"[a-zA-Z0-9_-]{1,40}"), ("nine", r"[a-zA-Z0-9]{9}"), ("kimi", r"functions\.look:\d+")],
)
@given(data=st.data())
def test_ids_have_the_form_their_vendor_wants(policy: IdPolicy, form: str, data: st.DataObject) -> None:
    call_ids = data.draw(st.lists(st.text(max_size=50), unique=True, max_size=6))
    provider_ids = data.draw(st.lists(st.sampled_from(["", "functions.look:1", "functions.look:3", "x"]), min_size=6))
    ids = CallIds(policy)
    wire = [ids.add(call(id, provider_id=theirs), "look") for id, theirs in zip(call_ids, provider_ids, strict=False)]

    assert all(re.fullmatch(form, id) for id in wire)
    assert len(set(wire)) == len(wire)
    assert [ids.wire(id) for id in call_ids] == wire


# Schemas --------------------------------------------------------------------------------------------------------------

TEXT = {"type": "string"}
OBJECT: JsonObject = {"type": "object", "properties": {"a": TEXT}}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (OBJECT, OBJECT),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "string"}, {"type": "object", "properties": {}}),
        ({**OBJECT, "const": {}}, OBJECT),
        (
            {"anyOf": [OBJECT, {"type": "object", "properties": {"b": TEXT}}]},
            {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": OBJECT}}, {**OBJECT, "$defs": {"A": OBJECT}}),
        (
            {"oneOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": OBJECT}},
            {**OBJECT, "$defs": {"A": OBJECT}},
        ),
        ({"$ref": "#/nowhere"}, {"type": "object", "properties": {}}),
        ({"$ref": "#"}, {"type": "object", "properties": {}}),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": OBJECT}},
            {**OBJECT, "$defs": {"A": {"$ref": "#/$defs/B"}, "B": OBJECT}},
        ),
        pytest.param({"anyOf": [True, OBJECT]}, OBJECT),
        pytest.param({"properties": None}, {"type": "object", "properties": {}}),
    ],
)
def test_a_schema_has_an_object_at_its_root(schema: JsonObject, shown: JsonObject) -> None:
    before = json.dumps(schema)

    assert tool_schema(schema) == shown
    assert json.dumps(schema) == before


def test_properties_with_odd_names_are_left_out_and_told() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a b": TEXT, "c": TEXT}, "required": ["a b", "c"]}
    plain, odd = with_plain_properties(schema)

    assert plain == {"type": "object", "properties": {"c": TEXT}, "required": ["c"]}
    assert odd == ["a b"]
    assert with_plain_properties(OBJECT) == (OBJECT, [])
    tool = build("anthropic", user("hi"), tools=[ToolSpec("look", "Looks.", schema)])["tools"][0]
    assert tool["description"] == "Looks.\nIt takes a b as well."


def test_a_property_that_is_left_out_is_not_forbidden() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a b": TEXT}, "additionalProperties": False}

    assert with_plain_properties(schema)[0].get("additionalProperties", True) is not False


# Files ----------------------------------------------------------------------------------------------------------------

ALL = frozenset({"image", "audio", "pdf"})


@pytest.mark.parametrize(
    ("file", "with_all", "with_none"),
    [
        (FILES[0], "image", "unread"),
        (FILES[1], "text", "text"),
        (FILES[2], "unread", "unread"),
        (FILES[3], "pdf", "unread"),
        (FILES[4], "audio", "unread"),
        (FILES[5], "unread", "unread"),
    ],
)
def test_what_a_model_reads_a_file_as(file: FilePart, with_all: str, with_none: str) -> None:
    assert file_kind(file, ALL, BLOBS) == with_all
    assert file_kind(file, frozenset(), BLOBS) == with_none


@pytest.mark.parametrize("vendor", ["anthropic", "gemini", "bedrock", "openai"])
def test_pdf_files_beyond_the_limit_of_a_vendor_are_read_as_text(vendor: str) -> None:
    profile = VENDORS[vendor].for_model("some")
    pages = profile.pdf_pages or 5_000
    data = dump_document("pdf", [SectionText("Lunch is at noon.")])
    files = {"a": b"%PDF", "b": b"%PDF", "text": data}
    first, second = (FilePart(name, "application/pdf", 4, f"{name}.pdf", "text", pages // 2) for name in "ab")
    more = FilePart("b", "application/pdf", 4, "b.pdf", "text", pages)

    within = ModelRequest("m", "", [user("look", first, second)], [], {}, files)
    beyond = ModelRequest("m", "", [user("look", first), tool_message(result(files=(more,)))], [], {}, files)

    assert fit_documents(within, profile) is profile
    fitted = fit_documents(beyond, profile)
    assert ("pdf" in fitted.inputs) == (vendor == "openai")  # no limit is known
    assert file_kind(first, fitted.inputs, files) == ("pdf" if vendor == "openai" else "text")
    assert as_text(first, files) == "[a.pdf: 1 page]\n--- page 1 ---\nLunch is at noon."


def test_a_file_as_a_format_wants_it() -> None:
    image, text, *_, archive = FILES

    assert as_base64(image, BLOBS) == base64.b64encode(b"png").decode()
    assert as_data_url(image, BLOBS) == "data:image/png;base64," + base64.b64encode(b"png").decode()
    assert as_text(text, BLOBS) == "[text/plain]\n\ufffd txt"
    assert as_note(archive) == "[a file that cannot be shown to you: z.zip, application/zip, 3 bytes]"


@pytest.mark.parametrize("vendor", THREE)
def test_files_of_a_person_and_of_a_tool_reach_the_model(vendor: str) -> None:
    image, *others = FILES
    profile = replace(VENDORS[vendor], inputs=ALL - {"audio"})
    body = build(
        profile, user("look", *FILES), assistant_message(call()), tool_message(result(files=(image,))), files=BLOBS
    )

    encoded = json.dumps(body)
    assert encoded.count(base64.b64encode(b"png").decode()) == 2
    assert encoded.count("a file that cannot be shown to you") == 3
    assert pairs(profile.format, body) == 1
    assert others
