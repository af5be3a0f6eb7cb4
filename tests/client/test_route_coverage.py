"""Every route of the server has a method in the Python client and in the TypeScript client, or a reason why not.

The lists are compared with the route table, and the Python methods are called: what they request is what the table says.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from everturn import api
from everturn.client import RemoteTurn, Server
from everturn.config.server_options import ServerOptions
from everturn.core.parts import FilesPart
from everturn.core.tenants.settings import AgentSettings, ModelSettings
from everturn.errors import EverturnError
from everturn.server.app import make_app
from everturn.server.route import Route

NOBODY = cast("Any", None)
ROUTES: dict[str, Route] = {
    route.name: route for route in make_app(NOBODY, NOBODY, NOBODY, ServerOptions()).table.routes
}

PROTOCOL = "a protocol with clients of its own: OpenAI, AI SDK, AG-UI or A2A"
BROWSER = "for a browser in which a person logs in, and not for a program with a key"
OTHER_SYSTEM = "for another system with a secret of its own"
OPERATION = "for the tools of whoever runs the server, or a document"

WITHOUT_METHOD: dict[str, str] = {
    **{name: BROWSER for name, route in ROUTES.items() if not route.path.startswith(("/api/", "/metrics", "/openapi"))},
    **{name: PROTOCOL for name, route in ROUTES.items() if route.tag in ("openai", "ai-sdk", "ag-ui", "a2a")},
    **dict.fromkeys(("password_login", "change_password", "open_invitation", "accept_invitation", "log_out"), BROWSER),
    **dict.fromkeys(("push", "subscribe_push", "unsubscribe_push"), BROWSER),
    **dict.fromkeys(("complete_callback",), OTHER_SYSTEM),
    **dict.fromkeys(("metrics", "openapi", "health", "ready", "healthz", "readyz"), OPERATION),
    "presence": "says what a tab of the web UI shows",
    "receive_hook": "`deliver_to_hook` sends it, with the secret of the hook instead of a key",
}


SAMPLE = {
    "session": "s",
    "turn": "t",
    "gate": "g",
    "hash": "h",
    "message": "m",
    "answer": "m",
    "grant": "g",
    "blob": "b",
    "share": "x",
    "notice": "n",
}


def calls(server: Server, ids: Mapping[str, str] = SAMPLE) -> dict[str, Callable[[], Awaitable[Any]]]:
    """A method of the Python client for each route, with arguments that fit, about a conversation with these ids."""
    session = server.session(ids["session"])
    turn, admin, sharing = RemoteTurn(server, session.id, ids["turn"]), server.administration, session.sharing
    files = FilesPart(step=1, root="r", before="b", after="a")
    view: Any = _gate_view(ids)
    return {
        "me": server.me,
        "agents": server.agents,
        "tools": server.tools,
        "sessions": server.sessions,
        "start": lambda: server.start_session("x"),
        "session": session.info,
        "update_session": lambda: session.update(title="x"),
        "erase": session.erase,
        "messages": session.messages,
        "send": lambda: session.send("x"),
        "tree": session.tree,
        "log": session.log_page,
        "log_tail": session.log_tail,
        "queue": session.queue,
        "rerun": lambda: session.rerun(ids["message"]),
        "fork": lambda: session.fork(ids["message"], 1),
        "compact": session.compact,
        "context": session.context,
        "edit": lambda: session.edit(ids["message"], "x"),
        "rate": lambda: session.rate(ids["answer"], "up"),
        "delete": lambda: session.delete(ids["message"]),
        "select": lambda: session.select(ids["message"]),
        "switch_agent": lambda: session.switch("assistant"),
        "turn": turn.state,
        "cancel": turn.cancel,
        "follow_turn": lambda: anext(aiter(turn)),
        "follow": lambda: anext(aiter(session.events())),
        "inbox": lambda: anext(aiter(server.inbox())),
        "session_gates": session.gates,
        "gates": server.gate_page,
        "answer": lambda: server.answer(view, allow="once"),
        "claim": lambda: server.claim(view, "c" * 16),
        "grants": session.grants,
        "revoke_grant": lambda: session.revoke(ids["grant"]),
        "revert": lambda: session.revert(files),
        "attach": lambda: server.attach(b"x", "text/plain", "a.txt"),
        "blob": lambda: session.read(ids["blob"]),
        "search": lambda: server.search("x"),
        "export": session.export,
        "import_session": lambda: server.import_session(b"x"),
        "memory": server.memory_files,
        "read_memory": lambda: server.read_memory("a"),
        "write_memory": lambda: server.write_memory("a", "x"),
        "delete_memory": lambda: server.delete_memory("a"),
        "prompts": server.prompts,
        "write_prompt": lambda: server.write_prompt("a", "x"),
        "delete_prompt": lambda: server.delete_prompt("a"),
        "instructions": server.instructions,
        "write_instructions": lambda: server.write_instructions("x"),
        "session_instructions": session.instructions,
        "write_session_instructions": lambda: session.write_instructions("x"),
        "usage": server.usage,
        "cache_usage": server.cache_usage,
        "rules": server.rules,
        "explain": lambda: server.explain("pay", {}, session=session.id),
        "tenant_grants": server.grants,
        "revoke_tenant_grant": lambda: server.revoke("g"),
        "servers": server.mcp_servers,
        "trust_server": lambda: server.trust_mcp(_mcp_view()),
        "retry_server": lambda: server.retry_mcp("s"),
        "log_in_server": lambda: server.login_mcp("s"),
        "log_out_server": lambda: server.logout_mcp("s"),
        "finish_mcp_login": lambda: server.finish_mcp_login(api.FinishMcpLogin(state="x")),
        "mcp_logins": lambda: admin.mcp_logins("s"),
        "revoke_mcp_login": lambda: admin.revoke_mcp_login("s", "u"),
        "mcp_offers": server.mcp_offers,
        "mcp_prompt": lambda: server.mcp_prompt("s", "p"),
        "mcp_resource": lambda: server.mcp_resource("s", "u"),
        "setup": server.setup,
        "people": server.people,
        "sharing": sharing.get,
        "share": lambda: sharing.share(user="u"),
        "revoke_share": lambda: sharing.revoke(ids["share"]),
        "create_link": sharing.create_link,
        "open_link": lambda: server.open_link("x"),
        "open_as_administrator": lambda: sharing.open_as_administrator("x"),
        "notices": server.notices,
        "dismiss_notice": lambda: server.dismiss_notice(ids["notice"]),
        "trace": turn.trace,
        "sent_request": lambda: turn.sent_request(1),
        "audio": server.audio,
        "transcribe": lambda: server.transcribe(b"x", session=session.id),
        "speak": lambda: session.speak("x"),
        "schedules": server.schedules,
        "create_schedule": lambda: server.create_schedule(api.NewSchedule(text="x", cron="0 9 * * *")),
        "plan_schedule": lambda: server.plan_schedule(api.PlanSchedule(cron="0 9 * * *")),
        "schedule": lambda: server.schedule("s"),
        "replace_schedule": lambda: server.replace_schedule("s", api.ScheduleDefinition(text="x", cron="0 9 * * *")),
        "delete_schedule": lambda: server.delete_schedule("s"),
        "pause_schedule": lambda: server.pause_schedule("s"),
        "resume_schedule": lambda: server.resume_schedule("s"),
        "run_schedule": lambda: server.run_schedule("s"),
        "webhooks": server.webhooks,
        "create_webhook": lambda: server.create_webhook(api.NewWebhook(url="https://example.com")),
        "webhook": lambda: server.webhook("w"),
        "update_webhook": lambda: server.update_webhook("w"),
        "delete_webhook": lambda: server.delete_webhook("w"),
        "rotate_webhook_secret": lambda: server.rotate_webhook_secret("w"),
        "pause_webhook": lambda: server.pause_webhook("w"),
        "resume_webhook": lambda: server.resume_webhook("w"),
        "test_webhook": lambda: server.test_webhook("w"),
        "webhook_deliveries": lambda: server.webhook_deliveries("w"),
        "replay_webhook": lambda: server.replay_webhook("w"),
        "settings": admin.settings,
        "put_model_key": lambda: admin.put_model_key("openai", "k"),
        "delete_model_key": lambda: admin.delete_model_key("openai"),
        "test_model_key": lambda: admin.test_model_key("openai"),
        "put_model": lambda: admin.put_model("m", ModelSettings("openai:m")),
        "delete_model": lambda: admin.delete_model("m"),
        "put_agent": lambda: admin.put_agent("a", AgentSettings()),
        "delete_agent": lambda: admin.delete_agent("a"),
        "agent_versions": lambda: admin.agent_versions("a"),
        "restore_agent": lambda: admin.restore_agent("a", 1),
        "put_mcp": lambda: admin.put_mcp("s", api.NewMcpSettings(url="https://example.com")),
        "delete_mcp": lambda: admin.delete_mcp("s"),
        "trust_mcp": lambda: admin.trust_mcp("s", "h"),
        "retry_mcp": lambda: admin.retry_mcp("s"),
        "stored_rules": admin.rules.get,
        "put_rules": lambda: admin.rules.put([], scope="tenant"),
        "rule_versions": admin.rules.versions,
        "restore_rules": lambda: admin.rules.restore(1),
        "dry_run_rules": lambda: admin.rules.dry_run([]),
        "explain_draft": lambda: admin.rules.explain([], "pay", {}),
        "hooks": server.hooks,
        "hook_calls": lambda: admin.hook_calls("h"),
        "put_hook": lambda: admin.put_hook("h", api.NewHook(scheme="standard", text="x")),
        "rotate_hook_secret": lambda: admin.rotate_hook_secret("h"),
        "delete_hook": lambda: admin.delete_hook("h"),
        "users": admin.users,
        "put_user": lambda: admin.put_user("u", api.PutUser(role="viewer")),
        "remove_user": lambda: admin.remove_user("u"),
        "set_user_budget": lambda: admin.set_user_budget("u", api.PutUserBudget()),
        "erase_memory": lambda: admin.erase_memory("u"),
        "reset_password": lambda: admin.reset_password("u"),
        "invitations": admin.invitations,
        "invite": lambda: admin.invite(api.NewInvitation(user="u")),
        "revoke_invitation": lambda: admin.revoke_invitation("i"),
        "user_usage": admin.user_usage,
        "keys": admin.keys,
        "make_key": lambda: admin.create_key(api.NewKey(user="u", role="viewer")),
        "revoke_key": lambda: admin.revoke_key("k"),
        "audit": admin.audit,
        "search_audit": lambda: admin.search_audit(by="u"),
        "tenants": admin.tenants,
        "put_tenant": lambda: admin.put_tenant("t", api.PutTenant(name="t")),
        "quarantine": admin.quarantine,
        "retry_session": lambda: admin.retry_session(session.id),
        "cancel_session": lambda: admin.cancel_session(session.id),
    }


def _gate_view(ids: Mapping[str, str]) -> Any:
    class View:
        session = ids["session"]

        class gate:
            id, hash = ids["gate"], ids["hash"]

    return View


def _mcp_view() -> Any:
    class View:
        name, hash = "s", "h"

    return View


class Recorder:
    """A server that refuses every request, and remembers which it was."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    async def refuse(self, request: web.Request) -> web.Response:
        await request.read()
        self.requests.append((request.method, request.path))
        return web.json_response({"error": {"code": "bad_request", "message": "not here"}}, status=400)


@pytest.fixture
async def recorder() -> AsyncGenerator[Recorder]:
    recorder, app = Recorder(), web.Application()
    app.router.add_route("*", "/{rest:.*}", recorder.refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield recorder
    await runner.cleanup()


def pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(path)))


async def test_every_route_has_a_method_of_the_python_client_or_a_reason(recorder: Recorder) -> None:
    async with Server(recorder.url, "token") as server:
        methods = calls(server)
        assert methods.keys() | WITHOUT_METHOD.keys() >= ROUTES.keys(), (
            ROUTES.keys() - methods.keys() - WITHOUT_METHOD.keys()
        )
        assert methods.keys() <= ROUTES.keys()
        assert not methods.keys() & WITHOUT_METHOD.keys()
        for name, call in methods.items():
            recorder.requests.clear()
            with pytest.raises(EverturnError):
                await call()
            (request,) = recorder.requests
            route = ROUTES[name]
            assert request[0] == route.method, name
            assert pattern(route.path).fullmatch(request[1]), (name, request)


# TypeScript -----------------------------------------------------------------------------------------------------------

SOURCE = Path(__file__).parents[2] / "web" / "client" / "src"
IN_TYPESCRIPT_BY_GET_AND_SEND = {
    name
    for name, route in ROUTES.items()
    if name not in (*WITHOUT_METHOD, "open_as_administrator")
    and (
        route.needs in ("owner", "operator")
        or name
        in (
            *("memory", "read_memory", "write_memory", "delete_memory"),
            *("prompts", "write_prompt", "delete_prompt", "instructions", "write_instructions"),
            *("session_instructions", "write_session_instructions", "switch_agent", "rules", "explain"),
            *("tenant_grants", "revoke_tenant_grant", "servers", "log_in_server", "log_out_server", "finish_mcp_login"),
            *("schedules", "create_schedule", "plan_schedule", "schedule", "replace_schedule", "delete_schedule"),
            *("pause_schedule", "resume_schedule", "run_schedule", "audio"),
            "follow_turn",  # `follow` has the events of all turns of a session
        )
    )
}
"""Routes without a method of their own in the package `@everturn/client`, which is for people who chat and approve: its `get`
and `send` request them, with the generated types.
"""


def paths_of_typescript() -> set[str]:
    text = "\n".join(file.read_text() for file in sorted(SOURCE.glob("*.ts")) if file.name != "types.gen.ts")
    text = text.replace("${sessionPath(session)}", "/api/sessions/{}").replace(
        "sessionPath(session)", '"/api/sessions/{}"'
    )
    return {
        re.sub(r"\$\{queryString.*|\?.*", "", re.sub(r"\$\{(?:id|encodeURIComponent)\([a-z]+\)\}", "{}", found))
        for found in re.findall(r"[`\"](/api/[^`\"]*)[`\"]", text)
    }


def test_every_route_has_a_method_of_the_typescript_client_or_a_reason() -> None:
    written = paths_of_typescript()
    missing = {
        name
        for name, route in ROUTES.items()
        if name not in WITHOUT_METHOD and re.sub(r"\{[a-z_]+\}", "{}", route.path) not in written
    }
    assert missing == IN_TYPESCRIPT_BY_GET_AND_SEND
