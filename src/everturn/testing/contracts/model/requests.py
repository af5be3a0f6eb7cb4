"""Requests contract of a model: prompt, parameters, tools, files and history arrive in the wire format."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.canonical_json import JsonObject
from everturn.core.options import ToolHistory
from everturn.core.parts import FilePart, TextPart
from everturn.errors import TurnError
from everturn.testing.contracts.model.bench import ModelBench, ModelTestBench, RecordingTool, calls_of, send_and_wait
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


class RequestsContract(ModelBench):
    """A request has the form that its format requires, and is accepted."""

    async def test_the_system_prompt_arrives(self, bench: ModelTestBench) -> None:
        await send_and_wait(bench.chat([Say("Ahoy.")], system="You are a pirate. 🏴‍☠️"))

        assert "You are a pirate. 🏴‍☠️" in bench.wire_request().system
        assert all("pirate" not in text for _, text in bench.wire_request().texts_by_role)

    # Parameters ---------------------------------------------------------------------------------------------------

    async def test_parameters_pass_as_they_are(self, bench: ModelTestBench) -> None:
        params = {"temperature": 0.25, "top_p": 0.5} if self.has_temperature else {"top_p": 0.5}

        await send_and_wait(bench.chat([Say("Fine.")]), params=params)

        assert {name: bench.seen[0].body[name] for name in params} == params

    async def test_the_longest_answer_is_said_in_the_words_of_the_format(self, bench: ModelTestBench) -> None:
        await send_and_wait(bench.chat([Say("Fine.")]), params={"max_tokens": 50})

        assert bench.wire_request().max_tokens == 50

    async def test_the_shortest_answer_is_accepted(self, bench: ModelTestBench) -> None:
        assert (await send_and_wait(bench.chat([Say("A")]), params={"max_tokens": 1})).text == "A"

    @pytest.mark.parametrize("title", ["Weather", "Das Wetter für heute", ""])
    async def test_the_schema_of_an_answer_is_said_in_the_words_of_the_format(
        self, bench: ModelTestBench, title: str
    ) -> None:
        schema: JsonObject = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}
        schema |= {"additionalProperties": False, **({"title": title} if title else {})}

        await send_and_wait(bench.chat([Say('{"city": "Ulm"}')]), params={"output_schema": schema})

        assert bench.wire_request().schema == schema

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_the_choice_of_a_tool_is_said_in_the_words_of_the_format(
        self, bench: ModelTestBench, choice: str
    ) -> None:
        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool()]), params={"tool_choice": choice})

        assert bench.wire_request().choice == choice

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_without_tools_there_is_nothing_to_choose(self, bench: ModelTestBench, choice: str) -> None:
        await send_and_wait(bench.chat([Say("Fine.")]), params={"tool_choice": choice})

        assert bench.wire_request().choice is None

    async def test_parameters_cannot_take_the_place_of_what_we_send(self, bench: ModelTestBench) -> None:
        params: dict[str, Any] = {"model": "another", "messages": [], "tools": [{}]}

        with pytest.raises(TurnError, match="cannot be given in params") as refused:
            await send_and_wait(bench.chat([Say("Fine.")]), params=params)

        assert all(f"'{name}'" in str(refused.value) for name in params)

    # Tools --------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
    async def test_a_tool_is_called_back_by_our_name(self, bench: ModelTestBench, name: str) -> None:
        odd = RecordingTool(name)
        chat = bench.chat(
            lambda body: [Call(self.read_request(body).tools[0])], [Say("Done.")], [Say("Still here.")], tools=[odd]
        )

        result = await send_and_wait(chat)

        assert len(odd.ran) == 1
        assert [part.name for part in calls_of(result.message)] == [name]
        assert (await send_and_wait(chat)).text == "Still here."

    async def test_tools_whose_names_look_the_same_to_the_provider_are_told_apart(self, bench: ModelTestBench) -> None:
        names = ["a.b", "a_b", "a:b", "x" * 70 + "1", "x" * 70 + "2", "x" * 64]
        tools = [RecordingTool(name) for name in names]

        def call_all(body: dict[str, Any]) -> list[Item]:
            return [Call(name) for name in self.read_request(body).tools]

        result = await send_and_wait(bench.chat(call_all, [Say("Done.")], tools=tools))

        assert [len(tool.ran) for tool in tools] == [1] * len(tools)
        assert [part.name for part in calls_of(result.message)] == names

    async def test_a_tool_of_an_odd_name_can_be_chosen(self, bench: ModelTestBench) -> None:
        await send_and_wait(
            bench.chat([Say("Fine.")], tools=[RecordingTool("files.read")]), params={"tool_choice": "files.read"}
        )

        assert bench.wire_request().choice == bench.wire_request().tools[0]

    @pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
    async def test_a_tool_may_have_any_schema(self, bench: ModelTestBench, schema: JsonObject) -> None:
        look = RecordingTool(schema=schema or {"title": "Anything"})
        chat = bench.chat([Call("look", '{"path": "a"}')], [Say("Done.")], tools=[look])

        await send_and_wait(chat)

        assert look.ran == [{"path": "a"}]
        shown = bench.wire_request(0).schemas[0].get("properties", {})
        assert ("path" in shown) == ("'path': {" in repr(schema))

    async def test_a_schema_behind_two_references_is_shown(self, bench: ModelTestBench) -> None:
        schema = {"$ref": "#/$defs/Same", "$defs": {"Same": {"$ref": "#/$defs/Item"}, "Item": ITEM}}

        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool(schema=schema)]))

        assert set(bench.wire_request().schemas[0]["properties"]) == {"path", "more"}

    # Files --------------------------------------------------------------------------------------------------------

    async def test_an_image_is_shown_to_who_can_see(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("A cat.")])

        await send_and_wait(chat, [TextPart("What is this?"), await chat.attach(PNG, "image/png", "cat.png")])
        await send_and_wait(chat, "Are you sure?")

        sent = bench.wire_request()
        assert sent.images == (1 if self.has_images else 0)
        assert ("cat.png" in sent.text) == (not self.has_images)
        assert "What is this?" in sent.text

    async def test_a_pdf_is_shown_to_who_can_read_it(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("A letter.")])

        await send_and_wait(chat, [await chat.attach(PDF, "application/pdf", "letter.pdf"), TextPart("And this?")])

        sent = bench.wire_request()
        assert sent.documents == (1 if self.has_pdf else 0)
        assert ("letter.pdf" in sent.text) == (not self.has_pdf)

    async def test_a_text_file_is_read_as_text_with_its_name(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("A poem.")])

        await send_and_wait(
            chat, [await chat.attach("Röslein 🌹".encode(), "text/plain", "poem.txt"), TextPart("And this?")]
        )

        assert "poem.txt" in bench.wire_request().text
        assert "Röslein 🌹" in bench.wire_request().text

    @pytest.mark.parametrize("kind", ["application/zip", "image/tiff", "video/mp4", ""])
    async def test_a_file_that_nobody_can_read_is_mentioned(self, bench: ModelTestBench, kind: str) -> None:
        chat = bench.chat([Say("I cannot open it.")])

        await send_and_wait(chat, [await chat.attach(b"\x00\x01\x02", kind, "thing.bin")])

        sent = bench.wire_request()
        assert "thing.bin" in sent.text
        assert (sent.images, sent.documents) == (0, 0)

    async def test_a_file_that_is_gone_is_mentioned(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("I cannot see it.")])

        await send_and_wait(chat, [TextPart("What is this?"), FilePart("no-such-blob", "image/png", 10, "gone.png")])

        assert "gone.png" in bench.wire_request().text

    # History ------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("policy", ["full", "results", "digest", "none"])
    async def test_every_policy_makes_a_history_that_is_accepted(
        self, bench: ModelTestBench, policy: ToolHistory
    ) -> None:
        first = [Think("Hm."), Say("I look."), Call("look", '{"path": "a"}'), Call("lok"), Call("look", "{oops")]
        chat = bench.chat(first, [Say("It is empty.")], [Say("As I said.")], tools=[RecordingTool()])

        await send_and_wait(chat, "Look.", params=self.thinking)
        await send_and_wait(chat, "And?", tool_history=policy, params=self.thinking)

        sent = bench.wire_request()
        assert len(sent.calls) == len(sent.results) == (3 if policy == "full" else 0)
        assert ("looked" in sent.text) == (policy != "none")
        assert "It is empty." in sent.text
        assert sent.texts_by_role[-1] == ("user", "And?")
