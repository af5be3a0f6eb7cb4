"""Server: what a user of an Everturn server sees and does there, apart from its sessions and turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack
from urllib.parse import quote, urlencode

from everturn import api
from everturn.client.administration import RemoteAdministration
from everturn.client.bodies import MessageOptions, RemoteGateReply, answer_body, message_fields
from everturn.client.event_stream import InboxStream
from everturn.client.http import NodeClient, decode_body
from everturn.client.session import MAX_PAGE_SIZE, RemoteSession
from everturn.client.turn import RemoteTurn, start_turn
from everturn.core.canonical_json import JsonObject
from everturn.core.webhooks import DeliveryState, WebhookEvent


class Server:
    """An everturn server, or several nodes of one cluster."""

    def __init__(self, urls: str | Sequence[str], token: str) -> None:
        self.node_client = NodeClient(urls, token)
        self.administration = RemoteAdministration(self.node_client)

    async def __aenter__(self) -> Server:
        """Return the client; no request is sent yet."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Running turns continue on the server."""
        await self.node_client.aclose()

    async def me(self) -> api.Me:
        """The authenticated user."""
        return await self.node_client.get("/api/me", api.Me)

    async def agents(self) -> list[api.AgentView]:
        """The agents of the server, the default one first."""
        return (await self.node_client.get("/api/agents", api.AgentList)).agents

    async def tools(self) -> list[api.ToolView]:
        """The tools of the server."""
        return (await self.node_client.get("/api/tools", api.ToolList)).tools

    async def sessions(
        self,
        limit: int = 50,
        before: str = "",
        *,
        archived: api.Archived = "exclude",
        label: str = "",
        agent: str = "",
        since: float = 0.0,
    ) -> api.SessionPage:
        """A page of sessions, last touched first; without archived ones, unless they are asked for."""
        filters = {"archived": archived, "label": label, "agent": agent, "since": str(since) if since else ""}
        query = {"limit": str(limit), **_set_values({"before": before, **filters})}
        return await self.node_client.get("/api/sessions", api.SessionPage, query)

    async def open_folder(self, path: str, *, key: str = "") -> api.FolderView:
        """Open a folder of this machine at the server of a terminal, and return the agent that works there.

        With the `key` of a first message, the answer also names the session that it will start.
        """
        body = api.OpenFolder(path=path, key=key)
        return decode_body(await self.node_client.ask("POST", "/api/folders", body=body), api.FolderView)

    async def start_session(
        self, text: str, *, temporary: bool = False, key: str | None = None, **options: Unpack[MessageOptions]
    ) -> RemoteTurn:
        """Start a session with its first message. The same `key` always returns the same turn.

        A `temporary` session is in no list and in no search, and is erased after a day.
        """
        body = api.NewSession(temporary=temporary, **message_fields(text, options))
        return await self.send_and_follow("/api/sessions", body, key)

    async def send_and_follow(self, path: str, body: api.Body, key: str | None) -> RemoteTurn:
        """Send a request that starts a turn."""
        return await start_turn(self, path, body, key)

    def session(self, session: str) -> RemoteSession:
        """A session by its id."""
        return RemoteSession(self, session)

    async def gates(self) -> list[api.GateView]:
        """All open gates of all sessions, oldest first, read page by page."""
        page = await self.gate_page(MAX_PAGE_SIZE)
        gates = {(gate.session, gate.gate.id): gate for gate in page.gates}
        while page.next:
            page = await self.gate_page(MAX_PAGE_SIZE, page.next)
            gates |= {(gate.session, gate.gate.id): gate for gate in page.gates}
        return list(gates.values())

    async def gate_page(self, limit: int = 200, after: str = "") -> api.GateList:
        """A page of open gates; `after` is `next` of the previous page."""
        query = {"limit": str(limit), **({"after": after} if after else {})}
        return await self.node_client.get("/api/gates", api.GateList, query)

    async def answer(self, view: api.GateView, **reply: Unpack[RemoteGateReply]) -> None:
        """Answer a gate; see `Turn.answer`."""
        path = f"/api/sessions/{quote(view.session, safe='')}/gates/{quote(view.gate.id, safe='')}/answer"
        await self.node_client.ask("POST", path, body=answer_body(view.gate, reply))

    async def claim(self, view: api.GateView, claim: str, lease: float = 60.0) -> api.ClaimView:
        """Claim a client call; `claim` is an unguessable name."""
        path = f"/api/sessions/{quote(view.session, safe='')}/gates/{quote(view.gate.id, safe='')}/claim"
        body = api.ClaimGate(hash=view.gate.hash, claim=claim, lease=lease)
        return decode_body(await self.node_client.ask("POST", path, body=body), api.ClaimView)

    async def attach(self, file: bytes | Path, media_type: str = "", name: str = "") -> api.FileView:
        """Upload a file in order to send it: `send("What is this?", files=[await server.attach(path)])`."""
        import asyncio

        data = file if isinstance(file, bytes) else await asyncio.to_thread(file.read_bytes)
        name = name or ("" if isinstance(file, bytes) else file.name)
        kind = media_type or "application/octet-stream"
        response = await self.node_client.ask("POST", "/api/files", data=data, kind=kind, query={"name": name})
        return decode_body(response, api.FileView)

    async def search(
        self,
        text: str,
        limit: int = 50,
        *,
        archived: api.Archived = "include",
        label: str = "",
        agent: str = "",
        since: float = 0.0,
        until: float = 0.0,
    ) -> list[api.SearchHit]:
        """Messages with all these words, in sessions that fit the filters."""
        times = {name: str(time) if time else "" for name, time in (("since", since), ("until", until))}
        filters = _set_values({"archived": archived, "label": label, "agent": agent, **times})
        query = {"q": text, "limit": str(limit), **filters}
        return (await self.node_client.get("/api/search", api.SearchResults, query)).results

    async def people(self) -> list[api.PersonView]:
        """The users of the tenant, whom a session can be shared with."""
        return (await self.node_client.get("/api/people", api.PeopleList)).people

    async def open_link(self, link: str) -> RemoteSession:
        """Open a read-only link, by its secret: the session can be read until the link expires or is revoked."""
        answer = await self.node_client.ask("POST", "/api/links/open", body=api.OpenLink(link=link))
        return self.session(decode_body(answer, api.OpenedLink).session)

    async def notices(self) -> list[api.NoticeView]:
        """When administrators opened sessions of the caller, until they are dismissed."""
        return (await self.node_client.get("/api/notices", api.NoticeList)).notices

    async def dismiss_notice(self, notice: str) -> None:
        """Dismiss a notice."""
        await self.node_client.ask("DELETE", f"/api/notices/{quote(notice, safe='')}")

    async def usage(self, since: float = 0.0) -> api.UsageView:
        """The usage of the tenant."""
        return await self.node_client.get("/api/usage", api.UsageView, {"since": str(since)})

    async def cache_usage(self, since: float = 0.0) -> api.CacheUsageView:
        """The requests of the tenant that missed the provider's prompt cache, by cause and model."""
        return await self.node_client.get("/api/usage/cache", api.CacheUsageView, {"since": str(since)})

    async def agent_list(self) -> api.AgentList:
        """The agents of the server, and their models."""
        return await self.node_client.get("/api/agents", api.AgentList)

    def inbox(self) -> InboxStream:
        """An endless stream of open gates and active sessions: a snapshot, then changes."""
        return InboxStream(self.node_client)

    async def rules(self, agent: str = "") -> api.RulesView:
        """The rules and tool settings that decide about an agent's calls."""
        return await self.node_client.get("/api/rules", api.RulesView, {"agent": agent} if agent else None)

    async def explain(
        self, tool: str, arguments: JsonObject, *, agent: str = "", session: str | None = None
    ) -> api.ExplainView:
        """Explain what the rules would decide about a call. Nothing is run."""
        body = api.ExplainCall(tool=tool, arguments=arguments, agent=agent, session=session)
        return decode_body(await self.node_client.ask("POST", "/api/explain", body=body), api.ExplainView)

    async def grants(self) -> list[api.GrantView]:
        """The grants of all sessions."""
        return (await self.node_client.get("/api/grants", api.GrantList)).grants

    async def revoke(self, grant: str) -> None:
        """Revoke a grant."""
        await self.node_client.ask("DELETE", f"/api/grants/{quote(grant, safe='')}")

    async def mcp_servers(self) -> list[api.McpView]:
        """The MCP servers of the server."""
        return (await self.node_client.get("/api/mcp", api.McpList)).servers

    async def trust_mcp(self, server: api.McpView) -> None:
        """Trust an MCP server as it was shown."""
        path = f"/api/mcp/{quote(server.name, safe='')}/trust"
        await self.node_client.ask("POST", path, body=api.TrustServer(hash=server.hash))

    async def retry_mcp(self, server: str) -> None:
        """Reconnect to an MCP server now."""
        await self.node_client.ask("POST", f"/api/mcp/{quote(server, safe='')}/retry")

    async def login_mcp(self, server: str) -> str:
        """Start a login to an MCP server; returns the URL where a person continues."""
        response = await self.node_client.ask("POST", f"/api/mcp/{quote(server, safe='')}/login", may_repeat=False)
        return decode_body(response, api.LoginView).address

    async def logout_mcp(self, server: str) -> None:
        """End the login to an MCP server."""
        await self.node_client.ask("DELETE", f"/api/mcp/{quote(server, safe='')}/login")

    async def mcp_offers(self) -> api.McpOffers:
        """The prompts and resources of the MCP servers that are connected."""
        return await self.node_client.get("/api/mcp/offers", api.McpOffers)

    async def mcp_prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> api.McpContent:
        """A prompt of an MCP server with its arguments filled in, as context for a message."""
        body = api.GetMcpPrompt(name=name, arguments=dict(arguments or {}))
        response = await self.node_client.ask("POST", f"/api/mcp/{quote(server, safe='')}/prompt", body=body)
        return decode_body(response, api.McpContent)

    async def mcp_resource(self, server: str, uri: str) -> api.McpContent:
        """A resource of an MCP server, as context and files for a message."""
        body = api.ReadMcpResource(uri=uri)
        response = await self.node_client.ask("POST", f"/api/mcp/{quote(server, safe='')}/resource", body=body)
        return decode_body(response, api.McpContent)

    async def schedules(self, limit: int = 200, after: str = "") -> api.ScheduleList:
        """A page of schedules, by id."""
        query = {"limit": str(limit), **({"after": after} if after else {})}
        return await self.node_client.get("/api/schedules", api.ScheduleList, query)

    async def schedule(self, id: str) -> api.ScheduleView:
        """One schedule, with its last runs."""
        return await self.node_client.get(f"/api/schedules/{quote(id, safe='')}", api.ScheduleView)

    async def create_schedule(self, schedule: api.NewSchedule) -> api.ScheduleView:
        """Send a message at planned times, or once at a time."""
        return decode_body(await self.node_client.ask("POST", "/api/schedules", body=schedule), api.ScheduleView)

    async def plan_schedule(self, plan: api.PlanSchedule) -> api.PlannedTimes:
        """The next planned times of a cron expression; nothing is stored."""
        return decode_body(await self.node_client.ask("POST", "/api/schedules/plan", body=plan), api.PlannedTimes)

    async def replace_schedule(self, id: str, schedule: api.ScheduleDefinition) -> api.ScheduleView:
        """Replace the definition of a schedule; the caller becomes its user."""
        path = f"/api/schedules/{quote(id, safe='')}"
        return decode_body(await self.node_client.ask("PUT", path, body=schedule), api.ScheduleView)

    async def pause_schedule(self, id: str) -> api.ScheduleView:
        """Start no more runs until it is resumed."""
        return decode_body(await self._ask_schedule(id, "pause"), api.ScheduleView)

    async def resume_schedule(self, id: str) -> api.ScheduleView:
        """Continue with the next planned time."""
        return decode_body(await self._ask_schedule(id, "resume"), api.ScheduleView)

    async def run_schedule(self, id: str) -> api.ScheduleRunView:
        """Start a run now."""
        return decode_body(await self._ask_schedule(id, "run"), api.ScheduleRunView)

    async def delete_schedule(self, id: str) -> None:
        """Delete a schedule; its turns go on."""
        await self.node_client.ask("DELETE", f"/api/schedules/{quote(id, safe='')}")

    async def hooks(self) -> list[api.HookView]:
        """The inbound hooks of the tenant."""
        return (await self.node_client.get("/api/hooks", api.HookList)).hooks

    async def webhooks(self) -> list[api.WebhookView]:
        """The URLs that are told of events."""
        return (await self.node_client.get("/api/webhooks", api.WebhookList)).webhooks

    async def webhook(self, id: str) -> api.WebhookView:
        """One webhook."""
        return await self.node_client.get(_webhook(id), api.WebhookView)

    async def pause_webhook(self, id: str) -> api.WebhookView:
        """Pause a webhook: nothing is sent until it is resumed."""
        return decode_body(await self.node_client.ask("POST", f"{_webhook(id)}/pause"), api.WebhookView)

    async def resume_webhook(self, id: str) -> api.WebhookView:
        """Resume a webhook that was paused or disabled."""
        return decode_body(await self.node_client.ask("POST", f"{_webhook(id)}/resume"), api.WebhookView)

    async def test_webhook(self, id: str) -> api.WebhookTestView:
        """Send a test event now, and return what the receiver answered."""
        answer = await self.node_client.ask("POST", f"{_webhook(id)}/test", may_repeat=False)
        return decode_body(answer, api.WebhookTestView)

    async def create_webhook(self, webhook: api.NewWebhook) -> api.WebhookWithSecret:
        """Tell a URL of events; its secret is in this answer alone."""
        response = await self.node_client.ask("POST", "/api/webhooks", body=webhook, may_repeat=False)
        return decode_body(response, api.WebhookWithSecret)

    async def update_webhook(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[WebhookEvent] | None = None,
        description: str | None = None,
        is_paused: bool | None = None,
    ) -> api.WebhookView:
        """Change what is given of a webhook; its secret stays. A new URL enables one that its receiver disabled."""
        body = api.PatchWebhook(
            url=url,
            events=None if events is None else list(events),
            description=description,
            is_paused=is_paused,
        )
        return decode_body(await self.node_client.ask("PATCH", _webhook(id), body=body), api.WebhookView)

    async def rotate_webhook_secret(self, id: str) -> api.WebhookWithSecret:
        """Make a new secret; for a day deliveries are signed with both."""
        response = await self.node_client.ask("POST", f"{_webhook(id)}/secret", may_repeat=False)
        return decode_body(response, api.WebhookWithSecret)

    async def webhook_deliveries(
        self, id: str, state: DeliveryState = "dead", limit: int = 100
    ) -> list[api.DeliveryView]:
        """The deliveries of a webhook in a state, newest first."""
        query = {"state": state, "limit": str(limit)}
        return (await self.node_client.get(f"{_webhook(id)}/deliveries", api.DeliveryList, query)).deliveries

    async def replay_webhook(self, id: str, *, session: str = "", seq: int = 0) -> int:
        """Send all dead deliveries again, or that of one event; return their number."""
        body = api.ReplayDeliveries(session=session, seq=seq)
        response = await self.node_client.ask("POST", f"{_webhook(id)}/replay", body=body)
        return decode_body(response, api.ReplayedDeliveries).count

    async def delete_webhook(self, id: str) -> None:
        """Delete a webhook and its deliveries."""
        await self.node_client.ask("DELETE", _webhook(id))

    async def _ask_schedule(self, id: str, action: str) -> bytes:
        return await self.node_client.ask("POST", f"/api/schedules/{quote(id, safe='')}/{action}")

    async def memory_files(self) -> api.MemoryList:
        """The memory files of the caller."""
        return await self.node_client.get("/api/memory", api.MemoryList)

    async def read_memory(self, path: str) -> api.MemoryFileView:
        """A memory file of the caller."""
        return await self.node_client.get(f"/api/memory/file?path={quote(path, safe='')}", api.MemoryFileView)

    async def write_memory(
        self, path: str, text: str, *, base: str = "", untrusted: bool | None = None
    ) -> api.MemoryFileView:
        """Write a whole memory file of the caller; with `base`, only if it still has that hash (`none`: a new file)."""
        body = api.PutMemory(path=path, text=text, base=base, untrusted=untrusted)
        return decode_body(await self.node_client.ask("PUT", "/api/memory/file", body=body), api.MemoryFileView)

    async def delete_memory(self, path: str) -> None:
        """Delete a memory file of the caller, or a directory with its files."""
        await self.node_client.ask("DELETE", f"/api/memory/file?path={quote(path, safe='')}")

    async def prompts(self) -> list[api.PromptView]:
        """The saved prompts of the configuration, the tenant and the caller."""
        return (await self.node_client.get("/api/prompts", api.PromptList)).prompts

    async def write_prompt(
        self,
        name: str,
        text: str,
        *,
        description: str = "",
        arguments: Sequence[api.PromptArgumentView] = (),
        shared: bool = False,
    ) -> api.PromptView:
        """Write a saved prompt of the caller; with `shared` of the tenant."""
        body = api.PutPrompt(name=name, text=text, description=description, arguments=list(arguments), shared=shared)
        return decode_body(await self.node_client.ask("PUT", "/api/prompts", body=body), api.PromptView)

    async def delete_prompt(self, name: str, *, shared: bool = False) -> None:
        """Delete a saved prompt of the caller; with `shared` of the tenant."""
        query = urlencode({"name": name, **({"shared": "true"} if shared else {})})
        await self.node_client.ask("DELETE", f"/api/prompts?{query}")

    async def instructions(self, agent: str = "") -> api.InstructionsView:
        """The layers of instructions that a new session would have."""
        query = {"agent": agent} if agent else None
        return await self.node_client.get("/api/instructions", api.InstructionsView, query)

    async def write_instructions(self, text: str, *, shared: bool = False) -> api.InstructionsView:
        """Write the instructions of the caller for all their sessions; with `shared` of the tenant; "" removes them."""
        body = api.PutInstructions(text=text, shared=shared)
        return decode_body(await self.node_client.ask("PUT", "/api/instructions", body=body), api.InstructionsView)

    async def setup(self) -> api.SetupView:
        """The configured model, and the other available model sources."""
        return await self.node_client.get("/api/setup", api.SetupView)

    async def transcribe(self, recording: bytes, *, session: str = "") -> api.TranscriptView:
        """The text of a recording, a WAV file with one channel of 16 bits; `session` is where it will be sent."""
        query = {"session": session} if session else None
        answer = await self.node_client.ask(
            "POST", "/api/transcription", data=recording, kind="audio/wav", query=query, may_repeat=False
        )
        return decode_body(answer, api.TranscriptView)

    async def audio(self) -> api.AudioView:
        """Whether recordings can be transcribed and texts spoken, and the limits."""
        return await self.node_client.get("/api/audio", api.AudioView)

    async def finish_mcp_login(self, login: api.FinishMcpLogin) -> api.McpLoginEnd:
        """Complete a login of the caller to an MCP server, with what its page returned."""
        answer = await self.node_client.ask("POST", "/api/mcp/login", body=login, may_repeat=False)
        return decode_body(answer, api.McpLoginEnd)

    async def import_session(self, file: bytes) -> RemoteSession:
        """Import an exported session."""
        response = await self.node_client.ask(
            "POST", "/api/import", data=file, kind="application/zip", may_repeat=False
        )
        return self.session(decode_body(response, api.SessionView).id)


def _set_values(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _webhook(id: str) -> str:
    return f"/api/webhooks/{quote(id, safe='')}"
