"""Private conversations, by the clients that people use: the Python client on every route, and those of four protocols."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from everturn.client import Server
from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import ROLES
from everturn.errors import EverturnError
from everturn.server.protocols.a2a import TaskId
from everturn.server.streams.open import StreamEndpoints
from tests.client.test_route_coverage import calls
from tests.helpers.private_world import (
    ADMINISTRATION,
    CONVERSATION,
    GATES,
    PEOPLE,
    SECRET,
    TENANT,
    Person,
    PrivateWorld,
    a_private_world,
)
from tests.helpers.recorded_streams import CLIENTS, play
from tests.helpers.route_matrix import absent, state_of
from tests.helpers.server_streams import signals_untouched
from tests.helpers.waiting import wait_until

READERS = ("author", "friend", "writer", "by_link", "administrator")
OUTSIDE = tuple(name for name in PEOPLE if name not in READERS)
RELATIONS = ("stranger", "outside_approver", "outside_owner", "former_friend", "foreign_owner")
READABLE = (
    "session messages tree log log_tail queue turn session_gates grants blob session_instructions sharing trace sent_request"
).split()
HAS_NODE_CLIENTS = (CLIENTS / "node_modules").exists() and shutil.which("node") is not None


@asynccontextmanager
async def a_server() -> AsyncGenerator[tuple[PrivateWorld, str]]:
    """The private world behind a port."""
    async with a_private_world() as private:
        streams = StreamEndpoints(private.world.house, ServerOptions())
        private.world.app.streams = streams
        config = uvicorn.Config(private.world.app, port=0, lifespan="off", log_config=None, access_log=False, ws="none")
        server = uvicorn.Server(config)
        with signals_untouched():
            socket = config.bind_socket()
            task = asyncio.create_task(server.serve(sockets=[socket]))
            await streams.start()
            await wait_until(lambda: is_true(server.started))
            try:
                yield private, f"http://127.0.0.1:{socket.getsockname()[1]}"
            finally:
                await streams.aclose()
                server.should_exit = server.force_exit = True
                await task
                socket.close()


async def is_true(value: bool) -> bool:
    return value


def is_for(person: Person, name: str) -> bool:
    """Whether somebody outside may use a route: approvers answer, and owners erase, retry and cancel."""
    if person.tenant != "ours":
        return False
    is_approver = ROLES.index(person.role) >= ROLES.index("approver")
    return (name in GATES and is_approver) or (name in ADMINISTRATION and person.role in ("owner", "operator"))


async def outcome(call: Any) -> str:
    """What a method of the client returns or raises, as text."""
    try:
        return repr(await call())
    except EverturnError as error:
        return f"{type(error).__name__}: {error}"


async def test_by_the_python_client_no_route_shows_it_to_somebody_outside() -> None:
    async with a_server() as (private, address):
        before = await state_of(private.world, TENANT)
        nothing = absent(private.things).ids()
        for name in RELATIONS:
            person = PEOPLE[name]
            async with Server(address, private.keys[name]) as server:
                real, other = calls(server, private.things.ids()), calls(server, nothing)
                for route in CONVERSATION.keys() & real.keys():
                    if is_for(person, route):
                        continue
                    seen = await outcome(real[route])
                    assert seen == await outcome(other[route]), (name, route)
                    assert SECRET not in seen
                for route in ("sessions", "search", "usage", "people", "notices", "schedules"):
                    assert SECRET not in await outcome(real[route]), (name, route)
        after = await state_of(private.world, TENANT)
        assert (after["logs"], after["inboxes"]) == (before["logs"], before["inboxes"])


async def test_by_the_python_client_those_it_is_shared_with_read_it_and_change_nothing() -> None:
    async with a_server() as (private, address):
        for name in ("friend", "by_link", "administrator"):
            async with Server(address, private.keys[name]) as server:
                methods = calls(server, private.things.ids())
                shown = {route: await outcome(methods[route]) for route in READABLE}
                assert not [route for route, seen in shown.items() if seen.startswith(("Unknown", "Forbidden"))], name
                assert SECRET in shown["messages"]
                for route in ("send", "rerun", "edit", "delete", "select", "update_session", "rate", "cancel", "share"):
                    assert (await outcome(methods[route])).startswith("Forbidden"), (name, route)


async def test_by_the_openai_client_it_is_as_absent() -> None:
    async with a_server() as (private, address):
        things, texts = private.things, set[str]()
        for name in OUTSIDE:
            async with openai.AsyncOpenAI(
                base_url=f"{address}/v1", api_key=private.keys[name], max_retries=0
            ) as client:
                for asking in (
                    client.responses.retrieve(things.response),
                    client.responses.cancel(things.response),
                    client.responses.create(model="assistant", input="x", previous_response_id=things.response),
                ):
                    with pytest.raises(openai.APIStatusError) as refused:
                        await asking
                    is_role = PEOPLE[name].role == "viewer" and refused.value.status_code == 403
                    assert is_role or refused.value.status_code == 404, name
                    texts |= {refused.value.response.text.replace(things.response, "")} if not is_role else set()
        assert len(texts) == 1
        assert SECRET not in repr(texts)
        async with openai.AsyncOpenAI(
            base_url=f"{address}/v1", api_key=private.keys["friend"], max_retries=0
        ) as client:
            assert (await client.responses.retrieve(private.things.response)).output
            with pytest.raises(openai.PermissionDeniedError):
                await client.responses.create(
                    model="assistant", input="x", previous_response_id=private.things.response
                )


async def test_by_the_a2a_client_it_is_as_absent() -> None:
    async with a_server() as (private, address):
        for name in (*OUTSIDE, "friend"):
            if PEOPLE[name].role == "viewer":
                continue  # a card takes a viewer, a request a member
            headers = {"authorization": f"Bearer {private.keys[name]}"}
            async with httpx.AsyncClient(headers=headers, timeout=30) as http:
                card = await A2ACardResolver(http, f"{address}/a2a/assistant").get_agent_card()
                client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
                seen: list[str] = []
                for things in (private.things, absent(private.things)):
                    task = pb.GetTaskRequest(id=TaskId(things.session, things.turn).id, history_length=9)
                    try:
                        seen.append(str(await client.get_task(task)))
                    except A2AError as error:
                        seen.append(f"{type(error).__name__}: {error}")
                listed = str(await client.list_tasks(pb.ListTasksRequest(history_length=9)))
            if name == "friend":
                assert SECRET in seen[0]
                assert SECRET in listed
            else:
                assert seen[0] == seen[1], name
                assert SECRET not in seen[0] + listed


@pytest.mark.live
@pytest.mark.skipif(not HAS_NODE_CLIENTS, reason="run scripts/protocol-clients first")
async def test_by_the_clients_of_ag_ui_and_the_ai_sdk_a_name_is_ones_own(tmp_path: Path) -> None:
    async with a_server() as (private, address):
        people = [
            {"key": private.keys["author"], "text": f"pay {SECRET}"},
            *({"key": private.keys[name], "text": "hello"} for name in ("stranger", "outside_owner", "foreign_owner")),
        ]
        for thread in ("a-name", private.things.session):
            (folder := tmp_path / thread).mkdir()
            payload = {"address": address, "thread": thread, "people": people}
            author, *others = await asyncio.to_thread(play, "private.mjs", payload, folder)
            assert '"interrupt"' in author["agUi"]
            assert "pay" in author["again"]
            for found in others:
                assert SECRET not in json.dumps(found)
                assert "interrupt" not in found["agUi"]
                assert "RUN_FINISHED" in found["agUi"]
                assert found["reconnected"] == found["again"] == "nothing runs"
                assert "Done." in found["sent"]
