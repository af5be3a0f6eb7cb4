"""Random schedules of structured output: types × vendors × output modes × tool formats, with and without tools.

A schedule is one session with two turns, and both want JSON of a random type. The model, where it has tools, calls one
first and then answers in the way the request wants it: as text, wrapped or not, in a code fence, or as a call of the
output tool. The provider is as strict as the vendors are. In every turn nothing may have been refused, the answer must be
allowed by the schema that was sent, and the text of the turn must be the JSON of the type: the same value, and valid.

    python tests/models/output_schedules.py --count 10000 [--seed N] [--jobs 2]

A seed makes the same schedule every time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from everturn import Chat, EverturnError, tool
from everturn.core.ports import Model
from everturn.models.structured_output import as_object_text
from everturn.models.structured_output.json_text import WRAPPER_KEY
from everturn.models.structured_output.plan import OUTPUT_MODES, OUTPUT_TOOL
from everturn.testing.provider import Call, Item, Provider, Say, Think

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script, too

from tests.models.output_types import random_type
from tests.models.prompted.tool_format_writer import bound, prompted, way_of
from tests.models.schedule_models import GROUPS, WAYS, all_models, system_of

INSTRUCTION = "must be JSON that fits this schema, and nothing else:\n"
PREAMBLES = ("", "", "Here it is:\n\n", "Sure.\n")


@tool(read_only=True)
async def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


@tool(read_only=True, name=OUTPUT_TOOL)
async def namesake(path: str) -> str:
    """Has the name of the output tool, and is another one."""
    return path


@dataclass
class Findings:
    """What was found, and how often each way was taken."""

    schedules: int = 0
    turns: int = 0
    modes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    problems: list[str] = field(default_factory=list[str])

    def add(self, other: Findings) -> None:
        """Add what another process has found."""
        self.schedules += other.schedules
        self.turns += other.turns
        self.modes += other.modes
        self.problems += other.problems


class WireAnswer:
    """The answer to one request, in the way the request wants it."""

    def __init__(self, group: str, body: dict[str, Any]) -> None:
        self.group, self.body, self.system = group, body, system_of(body)
        self.way = way_of({"messages": [{"role": "system", "content": self.system}]})

    @property
    def tools(self) -> dict[str, Any]:
        """The tools by name, with their schemas."""
        found: dict[str, Any] = {}
        for entry in self.body.get("tools", ()):
            for declared in entry.get("functionDeclarations", [entry.get("function", entry)]):
                schema = declared.get("parameters", declared.get("input_schema", {}))
                found[declared["name"]] = schema
        for entry in self.body.get("toolConfig", {}).get("tools", ()):
            if (spec := entry.get("toolSpec")) is not None:
                found[spec["name"]] = spec["inputSchema"]["json"]
        return found

    @property
    def native(self) -> Any:
        """The schema that the vendor is to enforce."""
        body = self.body
        config = body.get("generationConfig", {})
        chat = body.get("response_format", {}).get("json_schema", {}).get("schema")
        responses = body.get("text", {}).get("format", {}).get("schema")
        messages = body.get("output_config", {}).get("format", {}).get("schema")
        ollama = body.get("format") if isinstance(body.get("format"), dict) else None
        text_format = body.get("outputConfig", {}).get("textFormat")
        converse = json.loads(text_format["structure"]["jsonSchema"]["schema"]) if text_format else None
        found = (chat, responses, messages, config.get("responseJsonSchema"), ollama, converse)
        return next((schema for schema in found if schema is not None), None)

    @property
    def told(self) -> Any:
        """The schema in the system prompt."""
        _, found, rest = self.system.partition(INSTRUCTION)
        return json.loads(rest.splitlines()[0]) if found else None

    @property
    def output_tool(self) -> str:
        """The name of the output tool, if it is offered."""
        names = [name for name in self.tools if name.startswith(OUTPUT_TOOL)]
        own = "path" in self.tools.get(OUTPUT_TOOL, {}).get("properties", {})
        return max(names, default="", key=len) if not own or len(names) > 1 else ""


class OutputStage:
    """The provider, a model of every group, and the schedule that is being played."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._models: dict[str, Model] = all_models(provider.url)
        for group, listed in GROUPS.items():
            for name in listed.names:
                provider.script(name, [self._answers(group)], sequence=True)
        self._expected: Any = None
        self._is_called = True
        self._schema: dict[str, Any] = {}
        self._full: dict[str, Any] = {}  # with its definitions
        self._dice = random.Random()
        self._notes: list[str] = []
        self.problems: list[str] = []

    def _answers(self, group: str) -> Callable[[dict[str, Any]], Sequence[Item]]:
        return lambda body: self._answer(WireAnswer(group, body))

    # What a model says --------------------------------------------------------------------------------------------

    def _answer(self, wire: WireAnswer) -> list[Item]:
        dice = self._dice
        thoughts: list[Item] = [Think("Let me see.")] if dice.random() < 0.2 else []
        if not self._is_called:
            self._is_called = True
            call = Call("look", '{"path": "a"}', dice.choice((1, 3)))
            if wire.way == "native":
                return [*thoughts, Say("I look."), call] if dice.random() < 0.3 else [*thoughts, call]
            return bound([call]) if wire.way == "bound" else prompted([call], wire.way, False)
        return [*thoughts, *self._final(wire)]

    def _final(self, wire: WireAnswer) -> list[Item]:
        dice, pieces = self._dice, self._dice.choice((0, 1, 5, 40))
        if wire.output_tool:
            self._notes.append("tool")
            value = self._wrapped(wire.tools[wire.output_tool], is_checked=not wire.group.startswith("gemini"))
            call = Call(wire.output_tool, json.dumps(value, ensure_ascii=dice.random() < 0.5), pieces or 2)
            return [Say("So:"), call] if dice.random() < 0.2 else [call]
        if wire.way == "bound":
            self._notes.append("bound")
            answers = wire.native if wire.native is not None else wire.told
            if answers is None:  # the server is given a grammar
                value = {WRAPPER_KEY: self._expected} if as_object_text(self._full)[1] else self._expected
            else:
                branches = [branch for branch in answers["anyOf"] if "answer" in branch["properties"]]
                value = self._wrapped({**branches[0]["properties"]["answer"], "$defs": answers.get("$defs", {})})
            return [Say(json.dumps({"answer": value}), pieces)]
        if wire.native is not None:
            self._notes.append("native")
            return [Say(json.dumps(self._wrapped(wire.native)), pieces)]
        self._notes.append("prompted")
        text = json.dumps(self._wrapped(wire.told), indent=dice.choice((None, 2)))
        if "response_format" in wire.body or "format" in wire.body or wire.body.get("generationConfig"):
            return [Say(text, pieces)]
        fenced = f"```json\n{text}\n```\n" if dice.random() < 0.4 else text
        return [Say(dice.choice(PREAMBLES) + fenced, pieces)]

    def _wrapped(self, sent: Any, *, is_checked: bool = True) -> Any:
        """The value as the schema that was sent wants it; that schema must allow it."""
        if sent is None:
            self.problems.append("the request has no schema")
            return self._expected
        is_wrapper = list(sent.get("properties", ())) == [WRAPPER_KEY]
        is_own = list(self._schema.get("properties", ())) == [WRAPPER_KEY]
        value = {WRAPPER_KEY: self._expected} if is_wrapper and not is_own else self._expected
        if is_checked and (errors := [error.message for error in Draft202012Validator(sent).iter_errors(value)]):
            self.problems.append(f"the schema that was sent allows no {json.dumps(value)[:200]}: {errors[0][:200]}")
        return value

    # A schedule ---------------------------------------------------------------------------------------------------

    async def play(self, seed: int, findings: Findings, groups: Sequence[str]) -> None:
        """Play one schedule."""
        dice = self._dice = random.Random(seed)
        described, kind, make = random_type(dice)
        group = dice.choice(groups)
        name = dice.choice(GROUPS[group].names)
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        self._full = adapter.json_schema()
        self._schema = _resolved(self._full)
        has_tools, params = dice.random() < 0.5, dict(dice.choice(GROUPS[group].params))
        params |= {"output_schema": adapter.json_schema()}
        if dice.random() < 0.3:
            params["output_mode"] = dice.choice([mode for mode in OUTPUT_MODES if mode != "native"])
        if group in WAYS and dice.random() < 0.3:
            params["tool_format"] = dice.choice(("native", *WAYS))
        elif has_tools and group in ("ollama", "alternate", "chat") and dice.random() < 0.4:
            params["tool_format"] = dice.choice(WAYS)
        tools = [look, *([namesake] if dice.random() < 0.2 else [])] if has_tools else []
        findings.schedules += 1
        where = f"seed {seed}: {name}, {described}, {'with' if has_tools else 'without'} tools, " + str(
            {key: value for key, value in params.items() if key != "output_schema"}
        )
        async with Chat(self._models[name], tools=tools) as chat:
            for number in range(2):
                self.problems, self._notes = [], []
                self._expected = make(dice)
                self._is_called = not has_tools or number == 1
                self._provider.reset()
                problems = await self._turn(chat, params, adapter)
                problems += self.problems + [f"refused: {text[:300]}" for text in self._provider.refusals]
                findings.turns += 1
                findings.modes.update((note, group) for note in self._notes)
                findings.problems += [f"{where}, turn {number + 1}: {problem}" for problem in problems]
                if problems:
                    return

    async def _turn(self, chat: Chat, params: dict[str, Any], adapter: TypeAdapter[Any]) -> list[str]:
        try:
            async with asyncio.timeout(30):
                result = await (await chat.send("Tell me.", params=params))
        except (EverturnError, TimeoutError) as error:
            return [f"the turn failed: {error!r:.300}"]
        try:
            adapter.validate_json(result.text)
            if (value := json.loads(result.text)) != self._expected:
                return [f"the text is {json.dumps(value)[:200]}, and not {json.dumps(self._expected)[:200]}"]
        except (ValidationError, ValueError) as error:
            return [f"the text is not of the type: {result.text[:200]!r}: {str(error)[:200]}"]
        return []


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    ref = schema.get("$ref", "")
    return schema["$defs"][ref.rpartition("/")[2]] if ref else schema


async def play(seeds: Sequence[int], groups: Sequence[str] = tuple(GROUPS)) -> Findings:
    """Play the schedules of these seeds."""
    findings = Findings()
    async with Provider() as provider:
        stage = OutputStage(provider)
        for seed in seeds:
            await stage.play(seed, findings, groups)
    return findings


# From the command line ------------------------------------------------------------------------------------------------

MODES: Final = ("native", "tool", "prompted", "bound")


def table(findings: Findings) -> Iterator[str]:
    """How often each way was taken with each group."""
    yield f"{'':<12}" + "".join(f"{mode:>10}" for mode in MODES)
    for group in GROUPS:
        yield f"{group:<12}" + "".join(f"{findings.modes[mode, group]:>10}" for mode in MODES)


def _share(seeds: Sequence[int]) -> Findings:
    logging.disable()
    return asyncio.run(play(seeds))


def main() -> int:
    """Play many, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first; the others follow it")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    began = time.perf_counter()
    shares = [range(options.seed + job, options.seed + options.count, options.jobs) for job in range(options.jobs)]
    findings = Findings()
    with ProcessPoolExecutor(options.jobs) as pool:
        for share in pool.map(_share, shares):
            findings.add(share)
    took = time.perf_counter() - began
    print(*findings.problems[:50], *table(findings), sep="\n")
    print(f"{findings.schedules} schedules, {findings.turns} turns, {took:.0f} s; {len(findings.problems)} problems")
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
