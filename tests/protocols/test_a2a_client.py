"""A2A by the client of its own SDK: cards, streams, approvals, resumption, cancelling, and what must not work."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from everturn.testing import ScriptedHang, say
from tests.helpers.server_app import word
from tests.protocols.ui_server import MAILING, MAILS, TALK, TWICE, Served, served


@asynccontextmanager
async def connect(
    server: Served, role: str = "approver", *, streaming: bool = True, tenant: str = "ours", user: str = "ada"
) -> AsyncGenerator[Client]:
    """The stock client, which finds everything it needs in the card."""
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {word(role, tenant, user)}"}, timeout=30) as http:
        card = await A2ACardResolver(http, f"{server.address}/a2a/assistant").get_agent_card()
        yield ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


def message(*parts: pb.Part, text: str = "", task: str = "", context: str = "", id: str = "") -> pb.SendMessageRequest:
    texts = [pb.Part(text=text)] if text else []
    sent = pb.Message(message_id=id or uuid4().hex, role=pb.ROLE_USER, parts=[*texts, *parts])
    sent.task_id, sent.context_id = task, context
    return pb.SendMessageRequest(message=sent)


def data(**value: Any) -> pb.Part:
    part = pb.Part()
    part.data.struct_value.update(value)
    return part


class Story:
    """What a stream says, put together as the specification says: updates of status, and artifacts that grow."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.task = self.context = ""
        self.artifacts: dict[str, list[str]] = {}
        self.questions: list[dict[str, Any]] = []
        self.has_text = asyncio.Event()

    @property
    def text(self) -> str:
        return "".join(text for parts in self.artifacts.values() for text in parts)

    async def read(self, stream: Any) -> Story:
        async for event in stream:
            self.feed(event)
        return self

    def feed(self, event: pb.StreamResponse) -> None:
        match event.WhichOneof("payload"):
            case "task":
                self.task, self.context = event.task.id, event.task.context_id
                self._status(event.task.status)
                for artifact in event.task.artifacts:
                    self.artifacts[artifact.artifact_id] = [part.text for part in artifact.parts]
            case "status_update":
                assert (event.status_update.task_id, event.status_update.context_id) == (self.task, self.context)
                self._status(event.status_update.status)
            case "artifact_update":
                update = event.artifact_update
                parts = self.artifacts.setdefault(update.artifact.artifact_id, [])
                if not update.append:
                    parts.clear()
                parts += [part.text for part in update.artifact.parts]
                self.has_text.set()
            case other:
                raise AssertionError(other)

    def _status(self, status: pb.TaskStatus) -> None:
        state = pb.TaskState.Name(status.state).removeprefix("TASK_STATE_")
        if self.states[-1:] != [state]:
            self.states.append(state)
        for part in status.message.parts:
            if part.HasField("data"):
                self.questions = MessageToDict(part.data)["gates"]


async def test_the_card_says_where_the_agent_is_and_a_stream_is_its_answer() -> None:
    async with served(*TALK) as server, connect(server) as client:
        story = await Story().read(client.send_message(message(text="Hello")))
        again = await Story().read(client.send_message(message(text="And you?", context=story.context)))
        task = await client.get_task(pb.GetTaskRequest(id=story.task))
    assert (story.states, story.text) == (["WORKING", "COMPLETED"], "Hello, Ada.")
    assert (again.context, again.text) == (story.context, "Fine.")
    assert again.task != story.task
    assert [part.text for part in task.artifacts[0].parts] == ["Hello, Ada."]
    assert [sent.parts[0].text for sent in task.history] == ["Hello"]


async def test_the_default_agent_has_its_card_at_the_root() -> None:
    async with served(*TALK) as server, httpx.AsyncClient() as http:
        assert (await http.get(f"{server.address}/.well-known/agent-card.json")).status_code == 401
        http.headers["authorization"] = f"Bearer {word('viewer', 'ours', '')}"
        card = await A2ACardResolver(http, server.address).get_agent_card()
        assert (await http.get(f"{server.address}/a2a/nobody/.well-known/agent-card.json")).status_code == 404
    assert card.name == "assistant"
    assert card.supported_interfaces[0].url == f"{server.address}/a2a/assistant"
    assert card.supported_interfaces[0].protocol_version == "1.0"


async def test_without_a_stream_the_answer_is_the_finished_task() -> None:
    async with served(*TALK) as server, connect(server, streaming=False) as client:
        story = await Story().read(client.send_message(message(text="Hello")))
    assert (story.states, story.text) == (["COMPLETED"], "Hello, Ada.")


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_task_needs_input_and_goes_on_with_the_answer(streaming: bool) -> None:
    async with served(*MAILING) as server, connect(server, streaming=streaming) as client:
        story = await Story().read(client.send_message(message(text="Mail Bob")))
        assert story.states[-1] == "INPUT_REQUIRED"
        [question] = story.questions
        assert (question["tool"], question["arguments"], MAILS) == ("mail", {"to": "Bob"}, [])
        waiting = await client.get_task(pb.GetTaskRequest(id=story.task))
        assert waiting.status.state == pb.TASK_STATE_INPUT_REQUIRED

        answer = message(data(gate=question["gate"], approved=True, arguments={"to": "Ada"}), task=story.task)
        await story.read(client.send_message(answer))
        assert MAILS == ["Ada"]
    assert story.states[-1] == "COMPLETED"
    assert story.text == "One moment.\n\nIt was sent."


async def test_a_text_or_anything_but_true_approves_nothing() -> None:
    async with served(*MAILING) as server, connect(server) as client:
        story = await Story().read(client.send_message(message(text="Mail Bob")))
        for words in ("yes", "approved: true", story.questions[0]["gate"]):
            with pytest.raises(A2AError, match="a text cannot approve a call"):
                await Story().read(client.send_message(message(text=words, task=story.task)))
        with pytest.raises(A2AError, match="none of these questions is open"):
            await Story().read(client.send_message(message(data(gate="other", approved=True), task=story.task)))
        assert MAILS == []
        refused = message(data(gate=story.questions[0]["gate"], approved="yes", reason="no"), task=story.task)
        await story.read(client.send_message(refused))
        assert (MAILS, story.states[-1]) == ([], "COMPLETED")


async def test_two_questions_are_answered_in_one_message() -> None:
    async with served(*TWICE) as server, connect(server) as client:
        story = await Story().read(client.send_message(message(text="Mail both")))
        answers = [data(gate=question["gate"], approved=True) for question in story.questions]
        assert len(answers) == 2
        await story.read(client.send_message(message(*answers, task=story.task)))
    assert (sorted(MAILS), story.text) == (["Ada", "Bob"], "Both.")


async def test_the_same_message_id_is_the_same_task() -> None:
    async with served(*TALK) as server, connect(server, streaming=False) as client:
        first = await Story().read(client.send_message(message(text="Hello", id="m1")))
        second = await Story().read(client.send_message(message(text="Hello", id="m1")))
        assert (first.task, first.text) == (second.task, second.text)
        listed = await client.list_tasks(pb.ListTasksRequest())
    assert [task.id for task in listed.tasks] == [first.task]


async def test_a_running_task_is_subscribed_to_and_cancelled() -> None:
    async with served([say("As far as here"), ScriptedHang()]) as server, connect(server) as client:
        stream: Any = client.send_message(message(text="Hello"))
        story = Story()
        async for event in stream:
            story.feed(event)
            if story.text:
                break
        await stream.aclose()  # the connection is lost, and the task goes on

        again = Story()
        reading = asyncio.create_task(again.read(client.subscribe(pb.SubscribeToTaskRequest(id=story.task))))
        await again.has_text.wait()
        cancelled = await client.cancel_task(pb.CancelTaskRequest(id=story.task))
        await reading
        assert cancelled.status.state == pb.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(pb.CancelTaskRequest(id=story.task))
        with pytest.raises(UnsupportedOperationError):
            await Story().read(client.subscribe(pb.SubscribeToTaskRequest(id=story.task)))
    assert (again.text, again.states[-1]) == ("As far as here", "CANCELED")


async def test_tasks_are_listed_by_context_and_status() -> None:
    async with served(*TALK) as server, connect(server) as client:
        first = await Story().read(client.send_message(message(text="Hello")))
        second = await Story().read(client.send_message(message(text="And you?", context=first.context)))
        of_context = await client.list_tasks(pb.ListTasksRequest(context_id=first.context, include_artifacts=True))
        running = await client.list_tasks(pb.ListTasksRequest(status=pb.TASK_STATE_WORKING))
    assert [task.id for task in of_context.tasks] == [second.task, first.task]
    assert of_context.tasks[0].artifacts[0].parts[0].text == "Fine."
    assert list(running.tasks) == []


async def test_a_file_comes_along_and_a_url_is_never_fetched() -> None:
    async with served(*TALK) as server, connect(server) as client:
        file = pb.Part(raw=b"hello", filename="a.txt", media_type="text/plain")
        story = await Story().read(client.send_message(message(file, text="Read this")))
        task = await client.get_task(pb.GetTaskRequest(id=story.task))
        with pytest.raises(A2AError, match="URLs are not fetched"):
            await Story().read(client.send_message(message(pb.Part(url="http://127.0.0.1:1/x"), text="This")))
    assert [part.filename for part in task.history[0].parts if part.filename] == ["a.txt"]


async def test_of_another_tenant_there_is_no_task_and_no_context() -> None:
    async with served(*TALK) as server, connect(server) as client, connect(server, tenant="theirs") as stranger:
        story = await Story().read(client.send_message(message(text="Hello")))
        for wrong in (story.task, base64.urlsafe_b64encode(b'["x","y"]').decode(), "nonsense", story.task + "A"):
            with pytest.raises(TaskNotFoundError):
                await stranger.get_task(pb.GetTaskRequest(id=wrong))
        with pytest.raises(A2AError, match="there is no such context"):
            await Story().read(stranger.send_message(message(text="Hello", context=story.context)))
        assert list((await stranger.list_tasks(pb.ListTasksRequest())).tasks) == []


async def test_what_cannot_be_done_is_said_with_its_code() -> None:
    async with served(*TALK) as server:
        client = server.face("member")

        async def code(method: str, **params: Any) -> int:
            status, text = await client.ask(
                "POST", "/a2a/assistant", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            )
            assert status == 200, text
            return json.loads(text)["error"]["code"]

        assert await code("Sing") == -32601
        assert await code("GetTask") == -32602
        assert await code("CreateTaskPushNotificationConfig", taskId="x", url="http://127.0.0.1:1/") == -32003
        assert await code("GetExtendedAgentCard") == -32007
        assert await code("SendMessage", message={"messageId": "m", "parts": []}) == -32602
        assert await code("SendMessage", message={"messageId": "é", "parts": [{"text": "Hi"}]}) == -32602
        assert await code("SendMessage", message={"messageId": "m", "parts": [{"raw": "?"}]}) == -32602
