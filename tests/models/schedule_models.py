"""A plan → what a model says now: who is asked in the schedules, and everything they may answer.

What a model says is decided by a seed, and written as the request wants it: in the model's own calls or, where it was told
of tools in words, in those words. `schedules.py` plays it.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from tests.models.prompted.tool_format_writer import Broken, Half, Told, bound, prompted, way_of

from everturn.core.canonical_json import JsonObject, parse_object, replace_surrogates
from everturn.core.ports import Model
from everturn.models.profile import Profile
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing.provider import (
    Call,
    Cite,
    CutAt,
    Finish,
    Hang,
    HostedTool,
    Image,
    InBandError,
    Item,
    Raw,
    Redacted,
    Refuse,
    Say,
    Speech,
    Status,
    Think,
    Transcription,
)
from everturn.testing.provider.gemini_signatures import signature
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.strict.gemini import shows_thoughts
from everturn.testing.provider.strict.ollama import hides_thinking

MARK = "⌁"  # the last thing an answer that hangs has said
Note = Callable[[str], None]

# Who is asked ---------------------------------------------------------------------------------------------------------


class Group(Struct, frozen=True):
    """Models that are alike: a format, or a family with rules of its own. Each gets any of `params`."""

    vendor: str
    names: tuple[str, ...]
    params: tuple[dict[str, Any], ...] = ({},)
    weight: int = 2
    base: str = "/v1"
    tool_format: str = ""


THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096}
THOUGHTS_SHOWN = {"thinking_config": {"includeThoughts": True}}
WAYS = ("json", "xml", "blocks")
GROUPS: Final[dict[str, Group]] = {
    "messages": Group("anthropic", ("claude-a", "claude-b"), (THINKING, THINKING, {}, {"max_tokens": 100}), 4),
    "responses": Group(
        "openai", ("resp-a", "resp-b"), ({"reasoning": {"effort": "low", "summary": "auto"}}, {}, {"max_tokens": 8}), 4
    ),
    "chat": Group("openai-chat", ("gpt-4.1", "gpt-5-mini", "o-3"), ({}, {"max_tokens": 100})),
    "openrouter": Group("openrouter", ("anthropic/router", "x/router"), ({}, {"max_tokens": 100})),
    "mistral": Group("mistral", ("mistral-a", "mistral-b"), ({}, {"max_tokens": 100})),
    "deepseek": Group("deepseek", ("deepseek-a", "deepseek-b"), ({}, {"thinking": {"type": "enabled"}})),
    "kimi": Group("kimi", ("kimi-a", "kimi-b")),
    "alternate": Group("llamacpp", ("alternate-a", "alternate-b"), ({}, {"max_tokens": 100})),
    "gemini-2": Group(
        "gemini", ("gemini-2.5-a", "gemini-2.5-b"), ({}, THOUGHTS_SHOWN, {"max_tokens": 100}), 3, "/v1beta"
    ),
    "gemini-3": Group("gemini", ("gemini-3-a", "gemini-3-b"), ({}, THOUGHTS_SHOWN, {"max_tokens": 100}), 4, "/v1beta"),
    "ollama": Group(
        "ollama", ("local-a", "local-b"), ({}, {"think": True}, {"think": False, "num_ctx": 4096}), 4, base=""
    ),
    "bedrock": Group(
        "bedrock",
        ("anthropic.claude-sonnet-4-5-a", "anthropic.claude-sonnet-4-5-b"),
        (THINKING, {}, {"max_tokens": 100}),
        4,
        base="",
    ),
    **{
        way: Group("compatible", (f"told-{way}-a", f"told-{way}-b"), ({}, {"max_tokens": 100}), tool_format=way)
        for way in WAYS
    },
}
# The same formats in clouds, whose tools of the provider differ. They are played beside the others only where a test says so.
CLOUDS: Final[dict[str, Group]] = {
    "azure": Group("azure", ("deployed-a", "deployed-b"), GROUPS["responses"].params, base=""),
    "vertex-2": Group("vertex", ("gemini-2.5-v", "gemini-2.5-w"), GROUPS["gemini-2"].params, base=""),
    "vertex-3": Group("vertex", ("gemini-3-v", "gemini-3-w"), GROUPS["gemini-3"].params, base=""),
    "vertex-claude": Group("vertex", ("claude-v", "claude-w"), GROUPS["messages"].params, base=""),
}
ALL_GROUPS: Final = {**GROUPS, **CLOUDS}
GROUP_OF: Final = {name: key for key, group in ALL_GROUPS.items() for name in group.names}
FAMILIES: Final = {"azure": "responses", "vertex-2": "gemini-2", "vertex-3": "gemini-3", "vertex-claude": "messages"}
MEDIA: Final = ("picture@image-gen", "picture@image-edit", "voice@audio-tts", "ear@audio-stt")
MADE: Final[dict[str, Item]] = {
    "picture": Image(),
    "voice": Speech(),
    "ear": Transcription("Hello."),
}  # by their bare names
MAKERS = "media"  # the group of those that make files


def group_of(name: str) -> str:
    """The group of a model, under any of its names."""
    return MAKERS if name.partition("@")[0] in MADE else GROUP_OF[name]


def family_of(name: str) -> str:
    """The group whose way of answering a model has."""
    return FAMILIES.get(GROUP_OF[name], GROUP_OF[name])


def all_models(url: str) -> dict[str, Model]:
    """Every model there is, on the provider."""
    once = RetryPolicy(attempts=1)

    def profile(vendor: str, base: str) -> Profile:
        return replace(VENDORS[vendor], base_url=url + base, prices="")

    return {
        name: get_model(
            f"{group.vendor}:{name}",
            profile=profile(group.vendor, group.base),
            key="k",
            retry=once,
            tool_format=group.tool_format,
        )
        for group in ALL_GROUPS.values()
        for name in group.names
    } | {
        name: get_model(f"compatible:{name}", profile=profile("compatible", "/v1"), key="k", retry=once)
        for name in MEDIA
    }


# What they say --------------------------------------------------------------------------------------------------------

TEXTS = ("So it is.", "It ends with a blank. \n", "  ", "Ünï 🐢 cödé", "<think>hm</think>said", "", "a b " * 20)
THOUGHTS = ("Let me see.", "First this, then that. 🐢 " * 3, " ", "\n")
ARGUMENTS = {
    "look": '{"path": "a"}', "put": '{"path": "b", "text": "c"}', "pay": '{"amount": 1}', "mail": '{"to": "ada"}',
}  # fmt: skip
ODD_ARGUMENTS = (
    "", " ", "{", '{"path": "a"', "[]", "null", '"x"', '{"a":1}{"a":2}', '{"path": 1e999}', '{"path": "\\ud800"}',
    '{"a": NaN}', "{'a': 1}", '{"a": 1, "a": 2}', '{"deep": ' + "[" * 300 + "]" * 300 + "}", '{"": null}',
)  # fmt: skip
ODD_NAMES = (
    "no such tool",
    "",
    " ",
    "look!",
    "x" * 90,
    "LOOK",
    "functions.look",
    "änder",
    "look<|channel|>x",
    "invalid",
)
ODD_IDS = ("dup", "dup", " ", "functions.look:0", "functions.look:0", "call_" + "y" * 70, "a b", "ü", "123456789")
SERVER_TOOLS = ("messages", "responses", "gemini-2", "gemini-3")  # the groups whose providers run tools
SEARCHES = (
    HostedTool("web_search", '{"query": "turtles"}', "https://example.com/a\nhttps://example.com/b"),
    HostedTool("web_search", '{"query": "ünï 🐢"}', "", error="max_uses_exceeded"),
    HostedTool("bash_code_execution", '{"command": "echo 4"}', "4"),
)
# Bytes of an answer's beginning, and of each piece.
BYTES = {
    "messages": (330, 135),
    "responses": (2300, 300),
    "gemini-2": (0, 300),
    "gemini-3": (0, 300),
    "ollama": (0, 170),
    "bedrock": (130, 190),
}
CHAT_BYTES = (0, 330)
FILES = (
    (b"\x89PNG", "image/png", "a.png"), (b"%PDF-", "application/pdf", ""), (b"caf\xe9", "text/plain", "a.txt"),
    (b"RIFF", "audio/wav", "a.wav"), (b"PK", "application/zip", "a.zip"), (b"<svg/>", "image/svg+xml", "a.svg"),
    (b"GIF89a;", "image/gif", "a.gif"), (b"ID3", "audio/mpeg", "a.mp3"), (b"{", "application/json", "a.json"),
)  # fmt: skip
PICTURES = (
    (draw_png(b"turtle"), "image/png"), (b"GIF89a;", "image/gif"), (b"\xff\xd8\xff\xd9", "image/jpeg"),
    (b"moov", "video/mp4"), (b"?", "application/octet-stream"), (b"word", "text/plain"),
)  # fmt: skip


class Plan(Struct, frozen=True):
    """One answer to come. What it says in detail is decided by its seed when the request is there."""

    kind: str  # text · calls · cut · hang · fail
    seed: int
    calls: str = ""  # a tool that is surely called


def answer(plan: Plan, name: str, body: JsonObject, tools: Sequence[str], note: Note) -> list[Item]:
    """What a model says now."""
    if name in MADE:
        return [Status(500)] if plan.kind == "fail" else [MADE[name]]
    dice = random.Random(plan.seed)
    way = way_of({"messages": [{"role": "system", "content": system_of(body)}]})
    can_call = way != "native" or (
        ("tools" in body or "toolConfig" in body) and body.get("tool_choice") != {"type": "none"}
    )
    items = list(_thoughts(dice, note)) if dice.random() < 0.6 else []
    if dice.random() < 0.6:
        items.append(Say(dice.choice(TEXTS), dice.choice((0, 1, 3))))
    if plan.kind != "text" and (can_call or dice.random() < 0.1):
        items += _calls(dice, plan.calls, tools, note)
    if family_of(name) in SERVER_TOOLS and way == "native":
        items += _server_tools(random.Random(f"server/{plan.seed}"), note)
    if dice.random() < 0.06:
        dice.shuffle(items)  # a thought between two calls, a text behind them
    group = family_of(name)
    is_drawn = group in DRAWING and way == "native" and plan.kind not in ("hang", "fail") and dice.random() < 0.2
    if is_drawn:
        note("made a file")
        items = [DRAWING[group](dice, name, [item for item in items if isinstance(item, Say | Call)])]
    items += _end(dice, note)
    if plan.kind == "hang":
        items = _hanging(dice, items, group, is_thinking=_is_thinking(group, body), way=way)
    elif way != "native":
        note(f"in words: {way}")
        items = _in_words(items, way, is_loose=dice.random() < 0.4)
    return _ending(plan.kind, items, dice, group, note)


def _ending(kind: str, items: list[Item], dice: random.Random, group: str, note: Note) -> list[Item]:
    if kind == "fail":
        note("error")
        return [Status(500)] if dice.random() < 0.3 else [*items, InBandError(kind=dice.choice(("", "error", "bare")))]
    if kind == "cut":
        start, each = BYTES.get(group, CHAT_BYTES)
        return [*items, CutAt(dice.randrange(start + each * (3 + sum(map(_pieces, items)))))]
    return items


def system_of(body: JsonObject) -> str:
    """The system prompt of a request, wherever its format has it."""
    messages: list[JsonObject] = [*body.get("messages", ()), *body.get("input", ())]
    prompts = [message.get("content") for message in messages if message.get("role") in ("system", "developer")]
    return "\n".join(_texts([*prompts, *(body.get(name) for name in ("system", "instructions", "systemInstruction"))]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner = cast("JsonObject", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for item in inner:
            yield from _texts(item)


def _is_thinking(group: str, body: JsonObject) -> bool:
    """Whether a thought is shown."""
    match group:
        case "messages":
            return body.get("thinking", {}).get("type") == "enabled"
        case "bedrock":
            extra: JsonObject = body.get("additionalModelRequestFields", {})
            return extra.get("thinking", {}).get("type") == "enabled"
        case "gemini-2" | "gemini-3":
            return shows_thoughts(body)
        case "ollama":
            return not hides_thinking(body)
        case _:
            return True


def _pieces(item: Item) -> int:
    if isinstance(item, Say | Think):
        return (item.pieces or len(item.text.split(" "))) + 2
    if isinstance(item, Raw):
        return len(item.data) // 300 + 1
    return 5 if isinstance(item, Call) else 1


def _thoughts(dice: random.Random, note: Note) -> Iterator[Item]:
    for _ in range(dice.choice((1, 1, 2))):
        if dice.random() < 0.25:
            note("redacted")
            yield Redacted()
        else:
            note("reasoning")
            yield Think(dice.choice(THOUGHTS), dice.choice((0, 1, 4)))


def _calls(dice: random.Random, sure: str, tools: Sequence[str], note: Note) -> Iterator[Item]:
    names = [sure] if sure else []
    names += [dice.choice(tools) for _ in range(dice.choice((0, 1, 1, 2)) if sure else dice.choice((1, 1, 2, 3)))]
    dice.shuffle(names)
    note(f"{len(names)} calls")
    for name in names:
        arguments, call_id = ARGUMENTS.get(name, "{}"), ""
        if name != sure and dice.random() < 0.25:
            note("odd name")
            name = dice.choice(ODD_NAMES)
        if name != sure and dice.random() < 0.2:
            note("odd arguments")
            arguments = dice.choice(ODD_ARGUMENTS)
        if dice.random() < 0.2:
            note("odd id")
            call_id = dice.choice(ODD_IDS)
        yield Call(name, arguments, dice.choice((1, 2, 5)), call_id)


def _server_tools(dice: random.Random, note: Note) -> Iterator[Item]:
    """Tools that the provider runs: whole, or a call whose result comes in the next answer, or such a result."""
    if dice.random() < 0.5:
        return
    for _ in range(dice.choice((1, 1, 2))):
        search = dice.choice(SEARCHES)
        part = dice.choice(("both", "both", "call", "result"))
        note(f"server tool: {part}")
        yield replace(search, part=part)
        if dice.random() < 0.4:
            note("citation")
            yield Cite("So it says.", pieces=dice.choice((0, 1)))
    if dice.random() < 0.4:
        note("paused")
        yield Finish("paused")


def _end(dice: random.Random, note: Note) -> list[Item]:
    if dice.random() > 0.15:
        return []
    reason = dice.choice(("length", "content_filter", "refusal", "stop"))
    note(f"finish {reason}")
    return [Refuse("I will not."), Finish("refusal")] if reason == "refusal" else [Finish(reason)]


def _hanging(dice: random.Random, items: list[Item], group: str, *, is_thinking: bool, way: str) -> list[Item]:
    """Any beginning of an answer, the last word of which is marked, so that whoever waits for it can see it."""
    items = [item for item in items if isinstance(item, Say | Think | Redacted | Call)]
    items = items[: dice.randint(0, len(items))]
    last = items[-1] if items else Say("")
    if way == "bound":
        return [Say('{"answer": "word' + MARK), Hang()]
    if way != "native":
        # A call without a name is not shown before it is whole, and behind a broken one nothing is.
        begun: Told = (
            Half(last.name.strip() or "look", "path", "a" + MARK) if isinstance(last, Call) else Say("word" + MARK)
        )
        before = [item for item in items if item is not last and not (isinstance(item, Call) and _is_broken(item))]
        return [*_in_words(before, way, is_loose=False), *prompted([begun], way, is_loose=False), Hang()]
    if isinstance(last, Call) and group not in DRAWING:  # others send a call whole, or not at all
        shown = last.arguments[: dice.randint(0, len(last.arguments))]
        return [*items[:-1], replace(last, arguments=shown + MARK), Hang()]
    if isinstance(last, Think) and is_thinking:
        return [*items[:-1], replace(last, text=last.text + MARK), Hang()]
    return [*items, Say("word" + MARK), Hang()]


# In words, and in pictures --------------------------------------------------------------------------------------------


def _in_words(items: Sequence[Item], way: str, *, is_loose: bool) -> list[Item]:
    """The same from a model that was told of tools in words, and does as it was told, more or less."""
    if way == "bound":
        others = [item for item in items if not isinstance(item, Think | Say | Call)]
        return [*map(_clean, bound([item for item in items if item not in others])), *others]
    converted: list[Told] = [
        Broken(item.name, item.arguments) if isinstance(item, Call) and _is_broken(item) else item for item in items
    ]
    return [_clean(item) for item in prompted(converted, way, is_loose)]


def _is_broken(call: Call) -> bool:
    return parse_object(call.arguments or "{}") is None


def _clean(item: Item) -> Item:
    return replace(item, text=replace_surrogates(item.text)) if isinstance(item, Say) else item


def _from_gemini(dice: random.Random, name: str, items: Sequence[Say | Call]) -> Raw:
    """Words, pictures and calls, as Gemini sends them: each a part, any of them signed."""
    data, kind = dice.choice(PICTURES)
    picture: JsonObject = {"inlineData": {"mimeType": kind, "data": base64.b64encode(data).decode()}}
    parts = [{"text": item.text} if isinstance(item, Say) else _function_call(item) for item in items]
    parts.insert(dice.randint(0, len(parts)), picture)
    for part in parts:
        if dice.random() < 0.4 or ("functionCall" in part and name.startswith("gemini-3")):
            part["thoughtSignature"] = signature(name, "a part")
    events: list[JsonObject] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts
    ]
    events.append({"candidates": [{"finishReason": "STOP", "index": 0}]})
    return Raw(b"".join(b"data: %b\r\n\r\n" % msgspec.json.encode(event) for event in events))


def _function_call(call: Call) -> JsonObject:
    return {"functionCall": {"name": call.name, "args": parse_object(call.arguments) or {}}}


def _from_ollama(dice: random.Random, name: str, items: Sequence[Say | Call]) -> Raw:
    """The same, as Ollama would send it: a picture is of no type."""
    data, _ = dice.choice(PICTURES)
    messages: list[JsonObject] = [
        {"content": item.text}
        if isinstance(item, Say)
        else {"tool_calls": [{"function": {"name": item.name, "arguments": parse_object(item.arguments) or {}}}]}
        for item in items
    ]
    messages.insert(dice.randint(0, len(messages)), {"content": "", "images": [base64.b64encode(data).decode()]})
    lines = [{"message": {"role": "assistant", **message}, "done": False} for message in messages]
    lines.append({"message": {"role": "assistant", "content": ""}, "done": True})
    return Raw(b"".join(msgspec.json.encode(line) + b"\n" for line in lines), "application/x-ndjson")


DRAWING: Final[dict[str, Callable[[random.Random, str, Sequence[Say | Call]], Raw]]] = {
    "gemini-2": _from_gemini,
    "gemini-3": _from_gemini,
    "ollama": _from_ollama,
}  # groups whose models send files, and calls only whole
