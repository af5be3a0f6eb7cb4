"""What a model is asked with: the prompt, parameters, tools, files and the history, as its format has them."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.canonical import JsonObject
from everturn.core.options import HistoryPolicy
from everturn.core.parts import FilePart, TextPart
from everturn.errors import TurnError
from everturn.testing.contracts.model.bench import Bench, ModelBench, Noted, ask, calls_of
from everturn.testing.provider import Call, Item, Say, Think

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PDF = b"%PDF-1.7\n" + bytes(40)
NAMES = {
    "dots": "files.read",
    "blanks": "read a file",
    "letters of another script": "прочитать",
    "a hundred characters": "read_" * 20,
    "a colon": "mcp:files/read",
}
TEXT: JsonObject = {"type": "string"}
ITEM: JsonObject = {"type": "object", "properties": {"path": TEXT, "more": {"$ref": "#/$defs/Item"}}}
SCHEMAS: dict[str, JsonObject] = {
    "nothing": {},
    "no properties": {"type": "object"},
    "a reference": {"$ref": "#/$defs/Item", "$defs": {"Item": ITEM}},
    "anyOf": {"anyOf": [{"type": "object", "properties": {"path": TEXT}}, {"type": "object", "properties": {}}]},
    "oneOf references": {"oneOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}], "$defs": {"Item": ITEM}},
    "allOf": {"type": "object", "allOf": [{"properties": {"path": TEXT}}, {"required": ["path"]}]},
    "a choice": {"enum": [{"path": "a"}, {"path": "b"}]},
    "odd properties": {"type": "object", "properties": {"path": TEXT, "$filter": TEXT, "прочее": TEXT, "a b": TEXT}},
    "a property called anyOf": {"type": "object", "properties": {"anyOf": TEXT, "type": TEXT, "path": TEXT}},
}


class AskingContract(ModelBench):
    """What we mean arrives as the format has it, and is accepted."""

    async def test_the_system_prompt_arrives(self, bench: Bench) -> None:
        await ask(bench.chat([Say("Ahoy.")], system="You are a pirate. 🏴‍☠️"))

        assert "You are a pirate. 🏴‍☠️" in bench.sent().system
        assert all("pirate" not in text for _, text in bench.sent().said)

    # Parameters ---------------------------------------------------------------------------------------------------

    async def test_parameters_pass_as_they_are(self, bench: Bench) -> None:
        given = {"temperature": 0.25, "top_p": 0.5} if self.has_temperature else {"top_p": 0.5}

        await ask(bench.chat([Say("Fine.")]), params=given)

        assert {name: bench.seen[0].body[name] for name in given} == given

    async def test_the_longest_answer_is_said_in_the_words_of_the_format(self, bench: Bench) -> None:
        await ask(bench.chat([Say("Fine.")]), params={"max_tokens": 50})

        assert bench.sent().max_tokens == 50

    async def test_the_shortest_answer_is_accepted(self, bench: Bench) -> None:
        assert (await ask(bench.chat([Say("A")]), params={"max_tokens": 1})).text == "A"

    @pytest.mark.parametrize("title", ["Weather", "Das Wetter für heute", ""])
    async def test_the_schema_of_an_answer_is_said_in_the_words_of_the_format(self, bench: Bench, title: str) -> None:
        schema: JsonObject = {"type": "object", "properties": {"city": TEXT}, "additionalProperties": False}
        schema |= {"title": title} if title else {}

        await ask(bench.chat([Say('{"city": "Ulm"}')]), params={"output_schema": schema})

        assert bench.sent().schema == schema

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_the_choice_of_a_tool_is_said_in_the_words_of_the_format(self, bench: Bench, choice: str) -> None:
        await ask(bench.chat([Say("Fine.")], tools=[Noted()]), params={"tool_choice": choice})

        assert bench.sent().choice == choice

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_without_tools_there_is_nothing_to_choose(self, bench: Bench, choice: str) -> None:
        await ask(bench.chat([Say("Fine.")]), params={"tool_choice": choice})

        assert bench.sent().choice is None

    async def test_parameters_cannot_take_the_place_of_what_we_send(self, bench: Bench) -> None:
        given: dict[str, Any] = {"model": "another", "messages": [], "tools": [{}]}

        with pytest.raises(TurnError, match="cannot be given in params") as refused:
            await ask(bench.chat([Say("Fine.")]), params=given)

        assert all(f"'{name}'" in str(refused.value) for name in given)

    # Tools --------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
    async def test_a_tool_is_called_back_by_our_name(self, bench: Bench, name: str) -> None:
        odd = Noted(name)
        chat = bench.chat(
            lambda body: [Call(self.sent(body).tools[0])], [Say("Done.")], [Say("Still here.")], tools=[odd]
        )

        result = await ask(chat)

        assert len(odd.ran) == 1
        assert [part.name for part in calls_of(result.message)] == [name]
        assert (await ask(chat)).text == "Still here."

    async def test_tools_whose_names_look_the_same_to_the_provider_are_told_apart(self, bench: Bench) -> None:
        names = ["a.b", "a_b", "a:b", "x" * 70 + "1", "x" * 70 + "2", "x" * 64]
        tools = [Noted(name) for name in names]

        def call_all(body: dict[str, Any]) -> list[Item]:
            return [Call(name) for name in self.sent(body).tools]

        result = await ask(bench.chat(call_all, [Say("Done.")], tools=tools))

        assert [len(tool.ran) for tool in tools] == [1] * len(tools)
        assert [part.name for part in calls_of(result.message)] == names

    async def test_a_tool_of_an_odd_name_can_be_chosen(self, bench: Bench) -> None:
        await ask(bench.chat([Say("Fine.")], tools=[Noted("files.read")]), params={"tool_choice": "files.read"})

        assert bench.sent().choice == bench.sent().tools[0]

    @pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
    async def test_a_tool_may_have_any_schema(self, bench: Bench, schema: JsonObject) -> None:
        look = Noted(schema=schema or {"title": "Anything"})
        chat = bench.chat([Call("look", '{"path": "a"}')], [Say("Done.")], tools=[look])

        await ask(chat)

        assert look.ran == [{"path": "a"}]
        shown = bench.sent(0).schemas[0].get("properties", {})
        assert ("path" in shown) == ("'path': {" in repr(schema))

    async def test_a_schema_behind_two_references_is_shown(self, bench: Bench) -> None:
        schema = {"$ref": "#/$defs/Same", "$defs": {"Same": {"$ref": "#/$defs/Item"}, "Item": ITEM}}

        await ask(bench.chat([Say("Fine.")], tools=[Noted(schema=schema)]))

        assert set(bench.sent().schemas[0]["properties"]) == {"path", "more"}

    # Files --------------------------------------------------------------------------------------------------------

    async def test_an_image_is_shown_to_who_can_see(self, bench: Bench) -> None:
        chat = bench.chat([Say("A cat.")])

        await ask(chat, [TextPart("What is this?"), await chat.attach(PNG, "image/png", "cat.png")])
        await ask(chat, "Are you sure?")

        sent = bench.sent()
        assert sent.images == (1 if self.has_images else 0)
        assert ("cat.png" in sent.text) == (not self.has_images)
        assert "What is this?" in sent.text

    async def test_a_pdf_is_shown_to_who_can_read_it(self, bench: Bench) -> None:
        chat = bench.chat([Say("A letter.")])

        await ask(chat, [await chat.attach(PDF, "application/pdf", "letter.pdf"), TextPart("And this?")])

        sent = bench.sent()
        assert sent.documents == (1 if self.has_pdf else 0)
        assert ("letter.pdf" in sent.text) == (not self.has_pdf)

    async def test_a_text_file_is_read_as_text_with_its_name(self, bench: Bench) -> None:
        chat = bench.chat([Say("A poem.")])

        await ask(chat, [await chat.attach("Röslein 🌹".encode(), "text/plain", "poem.txt"), TextPart("And this?")])

        assert "poem.txt" in bench.sent().text
        assert "Röslein 🌹" in bench.sent().text

    @pytest.mark.parametrize("kind", ["application/zip", "image/tiff", "video/mp4", ""])
    async def test_a_file_that_nobody_can_read_is_mentioned(self, bench: Bench, kind: str) -> None:
        chat = bench.chat([Say("I cannot open it.")])

        await ask(chat, [await chat.attach(b"\x00\x01\x02", kind, "thing.bin")])

        sent = bench.sent()
        assert "thing.bin" in sent.text
        assert (sent.images, sent.documents) == (0, 0)

    async def test_a_file_that_is_gone_is_mentioned(self, bench: Bench) -> None:
        chat = bench.chat([Say("I cannot see it.")])

        await ask(chat, [TextPart("What is this?"), FilePart("no-such-blob", "image/png", 10, "gone.png")])

        assert "gone.png" in bench.sent().text

    # History ------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("policy", ["full", "results", "digest", "none"])
    async def test_every_policy_makes_a_history_that_is_accepted(self, bench: Bench, policy: HistoryPolicy) -> None:
        first = [Think("Hm."), Say("I look."), Call("look", '{"path": "a"}'), Call("lok"), Call("look", "{oops")]
        chat = bench.chat(first, [Say("It is empty.")], [Say("As I said.")], tools=[Noted()])

        await ask(chat, "Look.", params=self.thinking)
        await ask(chat, "And?", history=policy, params=self.thinking)

        sent = bench.sent()
        assert len(sent.calls) == len(sent.results) == (3 if policy == "full" else 0)
        assert ("looked" in sent.text) == (policy != "none")
        assert "It is empty." in sent.text
        assert sent.said[-1] == ("user", "And?")
