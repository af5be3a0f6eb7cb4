"""Inbound hooks over HTTP: a delivery starts one turn with untrusted content; a forged, old or foreign one starts none."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import ToolContext, tool
from everturn.agent import Agent
from everturn.app import App
from everturn.core.events import CallFinished, TurnStarted
from everturn.core.parts import ContextPart, TextPart
from everturn.errors import ConfigError
from everturn.inbound_hooks.hook import InboundHook
from everturn.inbound_hooks.signatures import sign_delivery
from everturn.server.app import Application
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.server_app import Answer, ask, make, make_house, word
from tests.helpers.waiting import wait_until

KEY = "whsec_" + base64.b64encode(b"k" * 24).decode()
ISSUE = {"action": "opened", "issue": {"number": 7, "title": "It is broken"}, "repo": "acme/site"}
TRIAGE = InboundHook(
    name="triage",
    scheme="standard",
    secrets=(KEY,),
    tenant="ours",
    text="Triage issue {{issue.number}}.",
    session="{{repo}}#{{issue.number}}",
    when={"action": ("opened", "edited")},
    max_bytes=2_000,
)
tokens: list[str] = []


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(resumable=True)
async def charge(ctx: ToolContext) -> object:
    """Charge a card: the provider tells us by a hook."""
    return await ctx.external(tokens.append, hook="provider")


class Site:
    """A server with a hook."""

    def __init__(self, *answers: Any) -> None:
        self.clock = FakeClock()
        model = ScriptedModel(*(answers or [say("Done.")] * 60))
        agent = Agent(model, name="assistant", tools=[pay, charge])
        self.app = App(agents=[agent], store=MemoryStore(), clock=self.clock)
        self.site: Application

    async def start(self, *hooks: InboundHook) -> None:
        house = await make_house(self.app)
        house.inbound_hooks.replace_all(hooks or (TRIAGE,))
        self.site = make(house)

    async def deliver(
        self,
        payload: Any,
        id: str = "d1",
        *,
        hook: str = "triage",
        scheme: Any = "standard",
        secret: str = KEY,
        age: float = 0.0,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        signed = sign_delivery(scheme, secret, id, int(self.clock.now() - age), body)
        merged = {"content-type": "application/json", **signed, **(headers or {})}
        return await ask(self.site, "POST", f"/api/hooks/{hook}", body=body, headers=merged)

    async def turns(self) -> list[TurnStarted]:
        found = [info.id for info in await self.app.store.sessions()]
        logs = [await self.app.store.events(session) for session in found]
        return [entry.event for log in logs for entry in log if isinstance(entry.event, TurnStarted)]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    tokens.clear()
    new_site = Site()
    await new_site.start()
    yield new_site
    await new_site.app.aclose()


async def done(site: Site, answer: Answer) -> None:
    await site.app.turn(f"{answer.json['session']}/{answer.json['turn']}", tenant="ours")


async def test_a_delivery_starts_a_turn_and_its_payload_is_untrusted(site: Site) -> None:
    answer = await site.deliver(ISSUE)
    assert (answer.status, answer.json["outcome"], answer.json["is_new"]) == (202, "started", True)
    await done(site, answer)
    [started] = await site.turns()
    assert started.input is not None
    text, context = started.input.parts
    assert text == TextPart("Triage issue 7.")
    assert isinstance(context, ContextPart)
    assert (context.kind, context.source, context.untrusted) == ("hook", "hook:triage", True)
    assert "It is broken" in context.text
    assert started.options.priority == "background"
    state = await site.app.turn(f"{answer.json['session']}/{answer.json['turn']}", tenant="ours").state()
    assert state.has_untrusted
    assert (await site.app.store.info(answer.json["session"])).tenant == "ours"


async def test_the_same_delivery_fifty_times_at_once_is_one_turn(site: Site) -> None:
    answers = await asyncio.gather(*(site.deliver(ISSUE) for _ in range(50)))
    assert {answer.status for answer in answers} == {202}
    assert len({(answer.json["session"], answer.json["turn"]) for answer in answers}) == 1
    assert sum(answer.json["is_new"] for answer in answers) == 1
    await done(site, answers[0])
    assert len(await site.turns()) == 1


async def test_a_delivery_that_comes_again_after_the_hook_was_changed_is_the_same_turn(site: Site) -> None:
    first = await site.deliver(ISSUE)
    await done(site, first)
    await site.start(replace(TRIAGE, text="Look at it."))
    again = await site.deliver(ISSUE)
    assert (again.status, again.json["turn"], again.json["is_new"]) == (202, first.json["turn"], False)
    assert len(await site.turns()) == 1


async def test_one_conversation_per_key_and_after_its_erasure_another_one(site: Site) -> None:
    first = await site.deliver(ISSUE, "d1")
    two = await site.deliver({**ISSUE, "action": "edited"}, "d2")
    other = await site.deliver({**ISSUE, "issue": {"number": 8}}, "d3")
    assert first.json["session"] == two.json["session"] != other.json["session"]
    assert first.json["turn"] != two.json["turn"]
    for answer in (first, two, other):
        await done(site, answer)
    await site.app.store.erase(first.json["session"])
    new = await site.deliver(ISSUE, "d4")
    assert new.status == 202
    assert new.json["session"] not in (first.json["session"], other.json["session"])


async def test_what_the_filter_leaves_out_does_nothing(site: Site) -> None:
    answer = await site.deliver({**ISSUE, "action": "closed"})
    assert (answer.status, answer.json["outcome"]) == (202, "ignored")
    assert await site.turns() == []


async def test_forged_unsigned_expired_and_unknown_are_refused_alike_and_leave_nothing(site: Site) -> None:
    theirs = "whsec_" + base64.b64encode(b"t" * 24).decode()
    refused = [
        await site.deliver(ISSUE, secret=theirs),
        await site.deliver(ISSUE, headers={"webhook-signature": ""}),
        await site.deliver(ISSUE, headers={"webhook-id": "d2"}),
        await site.deliver(ISSUE, age=301),
        await site.deliver(ISSUE, age=-301),
        await site.deliver(ISSUE, scheme="github", secret="a" * 32),
        await site.deliver(ISSUE, hook="nothing"),
        await ask(site.site, "POST", "/api/hooks/triage", json=ISSUE),
        await ask(site.site, "POST", "/api/hooks/triage", word("owner"), json=ISSUE),  # a key is not a signature
    ]
    assert {(answer.status, answer.body) for answer in refused} == {(401, refused[0].body)}
    assert refused[0].code == "hook_refused"
    assert await site.app.store.sessions() == []


async def test_a_replay_is_no_second_turn_and_later_it_is_refused(site: Site) -> None:
    body = json.dumps(ISSUE).encode()
    captured = sign_delivery("standard", KEY, "d1", int(site.clock.now()), body)
    headers = {"content-type": "application/json", **captured}
    answers = [await ask(site.site, "POST", "/api/hooks/triage", body=body, headers=headers) for _ in range(3)]
    assert len({answer.json["turn"] for answer in answers}) == 1
    await done(site, answers[0])
    site.clock.advance(600)
    assert (await ask(site.site, "POST", "/api/hooks/triage", body=body, headers=headers)).status == 401
    assert len(await site.turns()) == 1


async def test_an_oversized_body_is_refused_before_its_signature_is_checked(site: Site) -> None:
    assert (await site.deliver({**ISSUE, "x": "y" * 2_000})).status == 413
    assert (await site.deliver({**ISSUE, "x": "y" * 9_000}, hook="nothing")).status == 413  # a stranger's limit
    assert (await site.deliver({**ISSUE, "x": "y" * 1_000})).status == 202


async def test_a_signed_body_without_the_fields_of_the_session_is_unfit(site: Site) -> None:
    answer = await site.deliver({"action": "opened"})
    assert (answer.status, answer.code) == (422, "unfit")
    assert "hooks.triage.session" in answer.json["error"]["message"]
    assert (await site.deliver(b"{")).status == 422
    assert (await site.deliver(ISSUE, headers={"content-type": "text/plain"})).status == 415


async def test_a_payload_names_no_session_of_a_person(site: Site) -> None:
    mine = await site.app.chat("private", tenant="ours").run("Hello.")
    assert mine.status == "completed"
    answer = await site.deliver({**ISSUE, "repo": "private", "session": "private"})
    assert answer.json["session"] != "private"


async def test_its_user_must_be_active_when_it_comes(site: Site) -> None:
    await site.start(replace(TRIAGE, by="viewer"))
    refused = await site.deliver(ISSUE)
    assert (refused.status, refused.code) == (403, "forbidden")
    await site.start(replace(TRIAGE, by="member"))
    await done(site, await site.deliver(ISSUE))
    [started] = await site.turns()
    assert started.options.by == "member"


async def test_slack_is_answered_its_challenge_only_when_it_is_signed(site: Site) -> None:
    await site.start(InboundHook(name="slack", scheme="slack", secrets=("s" * 32,), tenant="ours", text="Answer."))
    payload = {"type": "url_verification", "challenge": "abc"}
    answer = await site.deliver(payload, hook="slack", scheme="slack", secret="s" * 32)
    assert (answer.status, answer.body) == (200, b"abc")
    assert (await site.deliver(payload, hook="slack", scheme="slack", secret="t" * 32)).status == 401
    event = {"type": "event_callback", "event_id": "Ev1", "event": {"text": "hi"}}
    again = {**event, "retry": 1}  # another body, the same event
    answers = [await site.deliver(sent, hook="slack", scheme="slack", secret="s" * 32) for sent in (event, again)]
    assert answers[0].json["turn"] == answers[1].json["turn"]


async def test_owners_list_the_hooks_of_their_tenant_without_secrets(site: Site) -> None:
    listed = await ask(site.site, "GET", "/api/hooks", word("owner"))
    assert [row["path"] for row in listed.json["hooks"]] == ["/api/hooks/triage"]
    assert KEY.removeprefix("whsec_").encode() not in listed.body
    assert KEY not in repr(TRIAGE)
    assert (await ask(site.site, "GET", "/api/hooks", word("owner", "theirs"))).json["hooks"] == []
    assert (await ask(site.site, "GET", "/api/hooks", word("member"))).status == 403


# An external result -------------------------------------------------------------------------------------------------

PROVIDER = InboundHook(
    name="provider", scheme="standard", secrets=(KEY,), tenant="ours", action="complete", token="ref", value="paid"
)


async def test_a_signed_delivery_finishes_an_external_wait_and_the_result_is_untrusted() -> None:
    tokens.clear()
    site = Site(calls(call("charge")), say("Charged."))
    others = [
        InboundHook(name="other", scheme="standard", secrets=(KEY,), tenant="ours", action="complete", token="ref"),
        InboundHook(name="theirs", scheme="standard", secrets=(KEY,), tenant="theirs", action="complete", token="ref"),
    ]
    await site.start(PROVIDER, *others)
    turn = await site.app.chat("s", tenant="ours").send("Charge it.")
    await wait_until(lambda: bool(tokens))
    [token] = tokens
    # The token is no secret: without the signature of its hook it is worth nothing.
    assert (await ask(site.site, "POST", f"/api/callbacks/{token}", json=1)).status == 404
    assert (await site.deliver({"ref": token, "paid": 9}, hook="provider", secret=KEY, age=400)).status == 401
    for foreign in ("other", "theirs"):
        assert (await site.deliver({"ref": token, "paid": 9}, hook=foreign)).status == 404
    for wrong in (token[:-2], token.replace("evh_", "evc_"), "evh_x.y"):
        assert (await site.deliver({"ref": wrong, "paid": 9}, hook="provider")).status == 404
    assert (await site.deliver({"paid": 9}, hook="provider")).status == 422
    first = await site.deliver({"ref": token, "paid": 9}, "d1", hook="provider")
    assert (first.status, first.json["outcome"], first.json["is_new"]) == (202, "completed", True)
    assert (await site.deliver({"ref": token, "paid": 9}, "d2", hook="provider")).json["is_new"] is False
    assert (await site.deliver({"ref": token, "paid": 1}, "d3", hook="provider")).status == 409
    assert (await turn).text == "Charged."
    [finished] = [e.event for e in await site.app.store.events("s") if isinstance(e.event, CallFinished)]
    assert (finished.output.text, finished.output.untrusted) == ("9", True)
    await site.app.aclose()


async def test_the_same_hook_name_in_another_tenant_does_not_finish_it() -> None:
    tokens.clear()
    site = Site(calls(call("charge")), say("Charged."))
    await site.start(replace(PROVIDER, tenant="theirs"))
    turn = await site.app.chat("s", tenant="ours").send("Charge it.")
    await wait_until(lambda: bool(tokens))
    assert (await site.deliver({"ref": tokens[0], "paid": 9}, hook="provider")).status == 404
    await turn.cancel()
    await site.app.aclose()


# A gate -------------------------------------------------------------------------------------------------------------

BUTTONS = InboundHook(
    name="buttons",
    scheme="slack",
    secrets=("s" * 32,),
    tenant="ours",
    action="answer",
    answer="actions.0.value",
    user="user.id",
    users={"U1": "approver", "U2": "member", "U3": "nobody"},
)


async def press(site: Site, opened: Any, user: str = "U1", **changed: Any) -> Answer:
    value = {"session": "s", "gate": opened.id, "hash": opened.hash, "allow": True, **changed}
    payload = {"type": "block_actions", "user": {"id": user}, "actions": [{"value": json.dumps(value)}]}
    return await site.deliver(payload, hook="buttons", scheme="slack", secret="s" * 32)


async def test_a_button_answers_a_gate_in_the_name_of_a_known_approver() -> None:
    site = Site(calls(call("pay", amount=3)), say("Paid."))
    await site.start(BUTTONS)
    result = await site.app.chat("s", tenant="ours").run("Pay.")
    assert result.status == "waiting"
    gate = result.gates[0].gate
    for user in ("U2", "U3", "U9"):
        assert (await press(site, gate, user)).status == 403
    assert (await press(site, gate, hash="0" * 64)).code == "hash_mismatch"
    assert (await press(site, gate, session="other")).status == 404
    assert (await press(site, gate, gate="gate_x")).status == 404
    assert (await press(site, gate, extra=1)).status == 422
    await site.start(replace(BUTTONS, tenant="theirs"))  # the same button at a hook of another tenant
    assert (await press(site, gate)).code == "unknown_gate"
    await site.start(BUTTONS)
    answers = [await press(site, gate) for _ in range(2)]
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"")] * 2
    assert (await press(site, gate, allow=False)).status == 409
    turn = site.app.turn(f"s/{result.turn}", tenant="ours")
    assert (await turn).text == "Paid."
    audit = await site.app.store.accounts.audit("ours")
    assert [(row.by, row.credential, row.on) for row in audit if row.did == "gate.answer"] == [
        ("approver", "hook:buttons", gate.id)
    ]
    await site.app.aclose()


async def test_a_denial_has_its_reason() -> None:
    site = Site(calls(call("pay", amount=3)), say("Not paid."))
    await site.start(BUTTONS)
    result = await site.app.chat("s", tenant="ours").run("Pay.")
    assert (await press(site, result.gates[0].gate, allow=False, reason="too much")).status == 200
    await site.app.turn(f"s/{result.turn}", tenant="ours")
    [finished] = [e.event for e in await site.app.store.events("s") if isinstance(e.event, CallFinished)]
    assert "too much" in finished.output.text
    await site.app.aclose()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "a b"}, "letters"),
        ({"scheme": "gitlab"}, "standard, github, slack"),
        ({"secrets": ()}, "accept requests from anyone"),
        ({"secrets": ("whsec_YQ==",)}, "at least 16 bytes"),
        ({"text": ""}, "text is missing"),
        ({"action": "complete"}, "token is missing"),
        ({"action": "answer", "answer": "a", "user": "b"}, "users is missing"),
        ({"session": "one"}, "name a field"),
        ({"max_bytes": 10**9}, "max_bytes"),
        ({"agent": "nobody"}, "nobody"),
    ],
)
async def test_a_wrong_definition_says_what_is_right(site: Site, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        site.app.inbound_hooks.add(replace(TRIAGE, **changed))


async def calls_of(site: Site, hook: str = "triage", tenant: str = "ours") -> list[str]:
    return [call.detail.outcome for call in await site.app.inbound_hooks.calls.last(hook, tenant, 50)]


async def test_the_last_calls_are_in_the_audit_log_without_their_payload(site: Site) -> None:
    answer = await site.deliver(ISSUE)
    await done(site, answer)
    for _ in range(3):  # those that do nothing are recorded once a minute
        assert (await site.deliver(ISSUE)).status == 202
        assert (await site.deliver({"action": "closed"}, "d2")).status == 202
        assert (await site.deliver(ISSUE, "d3", secret="whsec_" + "A" * 32)).status == 401
    assert sorted(await calls_of(site)) == ["ignored", "refused", "repeated", "started"]
    site.clock.advance(61)
    await site.deliver(ISSUE, "d4", age=1000)
    [refused, *_] = await site.app.inbound_hooks.calls.last("triage", "ours", 1)
    assert (refused.detail.outcome, "from now" in refused.detail.reason) == ("refused", True)
    assert await calls_of(site, tenant="theirs") == []
    assert await calls_of(site, "nothing") == []
    records = await site.app.store.accounts.audit("ours")
    assert not any("It is broken" in record.detail for record in records)
    started = next(record for record in records if '"started"' in record.detail)
    assert answer.json["session"] in started.detail


async def test_calls_of_hooks_that_are_not_there_are_recorded_nowhere(site: Site) -> None:
    before = len(await site.app.store.accounts.audit("ours"))
    assert (await site.deliver(ISSUE, hook="nothing")).status == 401
    assert len(await site.app.store.accounts.audit("ours")) == before
