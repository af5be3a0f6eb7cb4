"""Attached documents: the first part goes with the message, and the model reads the rest by range, or searches in it."""

from __future__ import annotations

import pytest
from tests.helpers.document_files import DOCX_TYPE, make_docx, make_pdf, make_xlsx

from everturn import Agent, App, Chat, tool
from everturn.core.parts import FilePart, TextPart
from everturn.core.requests import ModelRequest, RequestResult
from everturn.errors import ConfigError
from everturn.models.formats.files import as_text, file_kind
from everturn.testing import ScriptedModel, call, calls, say

REPORT = make_pdf(
    [f"Chapter {n}\n" + "\n".join(f"line {line} of {n}, and more words" for line in range(40)) for n in range(1, 31)]
)
NOTHING: frozenset[str] = frozenset()


def tool_names(request: ModelRequest) -> list[str]:
    return [tool.name for tool in request.tools]


def results(request: ModelRequest) -> list[str]:
    return [part.text for message in request.messages for part in message.parts if isinstance(part, RequestResult)]


async def test_a_model_reads_the_first_part_and_then_a_range_and_a_search() -> None:
    model = ScriptedModel(
        calls(call("read_document", first=28, last=28), call("read_document", file="report.pdf", find="Chapter 29")),
        say("Done."),
    )
    async with Chat(model) as chat:  # a chat without tools of its own
        file = await chat.attach(REPORT, name="report.pdf")
        assert (file.media_type, file.pages) == ("application/pdf", 30)
        await (await chat.send([TextPart("What is in it?"), file]))
    first, second = model.requests
    assert tool_names(first) == tool_names(second) == ["read_document"]
    assert file_kind(file, NOTHING, first.files) == "text"
    assert file_kind(file, frozenset({"pdf"}), first.files) == "pdf"
    shown = as_text(file, first.files)
    assert shown.startswith("[report.pdf: 30 pages, only the beginning is here; read_document reads on from first=")
    assert 12_000 <= len(shown) < 13_500
    page, found = results(second)
    assert page.startswith("[report.pdf: 30 pages]\n--- page 28 ---\nChapter 28\nline 0 of 28")
    assert "Chapter 29" not in page
    assert found == "[report.pdf: 1 line with 'Chapter 29']\npage 29, line 1: Chapter 29"


async def test_without_a_document_there_is_no_such_tool_and_a_turn_without_tools_has_none() -> None:
    model = ScriptedModel(say("Hello."), say("No tools."), say("Still."))
    async with Chat(model) as chat:
        await chat.run("Hi")
        file = await chat.attach(make_docx(["Plan"]), name="plan.docx")
        assert (file.media_type, file.pages) == (DOCX_TYPE, 0)
        await (await chat.send([TextPart("Read it"), file], tools=[]))
        await chat.run("And now?")
    assert [tool_names(request) for request in model.requests] == [[], [], ["read_document"]]


async def test_mistakes_are_explained_to_the_model() -> None:
    tool_calls = [
        call("read_document", file="other.pdf"),
        call("read_document"),
        call("read_document", file="plan.docx", first=2),
        call("read_document", file="plan.docx", page=2),
        call("read_document", file="locked.pdf"),
        call("read_document", file="PLAN.DOCX", line=2),
    ]
    model = ScriptedModel(calls(*tool_calls), say("Done."))
    async with Chat(model) as chat:
        plan = await chat.attach(make_docx(["one", "two"]), name="plan.docx")
        locked = await chat.attach(b"no pdf", name="locked.pdf")
        assert await chat.read(locked) == b"no pdf"  # it is attached all the same
        await (await chat.send([plan, locked]))
    unknown, which, range_, argument, empty, good = results(model.requests[1])
    assert unknown == "there is no document 'other.pdf'; there are: locked.pdf, plan.docx"
    assert which == "say which `file`: locked.pdf, plan.docx"
    assert range_ == "plan.docx has parts 1 to 1, not 2 to 2"
    assert "read_document accepts file, first, last, line, find, not page" in argument
    assert empty.startswith("locked.pdf has no text that could be read: it is damaged")
    assert good == "[plan.docx: 2 lines]\ntwo"
    assert as_text(locked, model.requests[0].files).startswith("[locked.pdf; it is damaged")


async def test_documents_of_another_branch_are_not_read() -> None:
    model = ScriptedModel(say("Read."), say("Nothing."))
    async with Chat(model) as chat:
        await (await chat.send([TextPart("a"), await chat.attach(make_docx(["secret"]), name="a.docx")]))
        await (await chat.edit((await chat.messages())[0], "without it"))
    assert tool_names(model.requests[1]) == []
    assert "a.docx" not in str(model.requests[1].messages)


async def test_the_text_of_a_document_is_stored_beside_it_and_erased_with_it() -> None:
    async with App(agents=[Agent(ScriptedModel(say("Read.")), name="reader")]) as app:
        chat = app.chat()
        file = await chat.attach(make_xlsx({"Plan": '<row r="1"><c r="A1"><v>40</v></c></row>'}), name="plan.xlsx")
        await (await chat.send([file]))
        assert file.pages == 1
        assert file.text
        assert await app.store.refers_to_blob(chat.session, file.text)
        assert b"1\t40" in await chat.read(FilePart(file.text, "text/plain", 0))


def test_the_name_is_taken() -> None:
    @tool(name="read_document")
    def other() -> str:
        """Read."""
        return ""

    with pytest.raises(ConfigError, match="read_document"):
        Chat(ScriptedModel(), tools=[other])
