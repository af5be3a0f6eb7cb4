"""Who may answer what: by role and kind of gate, for the bytes that were shown, once. What is reviewed is veiled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from everturn import api
from everturn.access import Access
from everturn.access.context.agents import AgentSpec
from everturn.access.context.role_redaction import redact_event, redact_gate, redact_message
from everturn.access.context.server_context import ServerContext
from everturn.core.events import CallFinished, GateOpened, GateResolved, TurnStarted
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, TextPart, ToolPart
from everturn.core.rules.policy import Rule
from everturn.core.tenants.accounts import Role
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    ClaimedOtherwise,
    ConfigError,
    Forbidden,
    GateClosed,
    HashMismatch,
    NotClaimed,
    UnknownGate,
    UnknownSession,
)
from tests.helpers.tenants import (
    AGENTS,
    BELL,
    PRIVATE,
    SECRET,
    a_house,
    access_of,
    gate_in,
    over,
    somebody,
    start_session,
)
from tests.helpers.waiting import wait_until


async def asking(house: ServerContext, text: str, **how: Any) -> tuple[api.MessageReceipt, api.GateView]:
    """A turn that waits at a gate."""
    sent = await start_session(access_of(house, "member"), text, **how)
    return sent, await gate_in(access_of(house, "owner"), sent.session)


def yes(view: api.GateView, **how: Any) -> api.AnswerGate:
    fields: dict[str, Any] = {"allow": "once", **how}
    return api.AnswerGate(hash=view.gate.hash, **fields)


# Who may answer --------------------------------------------------------------------------------------------------------

ROLES_FOR: dict[str, tuple[str, dict[str, Any], Role]] = {
    "a call": ("pay", {"allow": "once"}, "approver"),
    "a call, denied": ("pay", {"allow": None, "deny": "no"}, "approver"),
    "a call, done by hand": ("pay", {"allow": None, "result": "paid"}, "approver"),
    "a call, for the session": ("pay", {"allow": "always"}, "approver"),
    "a call, everywhere": ("pay", {"allow": "always", "everywhere": True}, "owner"),
    "a result": ("peek", {"allow": "once"}, "approver"),
    "a result, withheld": ("peek", {"allow": None, "deny": True}, "approver"),
    "a form": ("quiz", {"allow": None, "result": "4"}, "member"),
    "a form, denied": ("quiz", {"allow": None, "deny": True}, "member"),
    "a form, and all that is asked beside": ("quiz", {"allow": None, "deny": True, "others": True}, "approver"),
}


@pytest.mark.parametrize("name", ROLES_FOR)
async def test_an_answer_takes_the_role_for_its_kind(name: str) -> None:
    text, reply, needed = ROLES_FOR[name]
    order: tuple[Role, ...] = ("viewer", "member", "approver", "owner")
    async with a_house() as house:
        sent, view = await asking(house, text)
        for role in order[: order.index(needed)]:
            with pytest.raises(Forbidden, match=needed if role != "viewer" else "member"):
                await access_of(house, role).gates.resolve(sent.session, view.gate.id, yes(view, **reply))
        assert (await access_of(house, "owner").gates.page(sent.session)).gates == [view], "nothing was answered"
        await access_of(house, needed).gates.resolve(sent.session, view.gate.id, yes(view, **reply))
        await over(access_of(house, "owner"), sent)
        log = await house.app.store.events(sent.session)
        (answered,) = [entry.event for entry in log if isinstance(entry.event, GateResolved)]
        assert answered.resolution.by == f"{needed}-ada"
        (noted,) = [
            record
            for record in (await access_of(house, "owner").accounts.audit()).records
            if record.did == "gate.answer"
        ]
        assert (noted.on, noted.by) == (view.gate.id, f"{needed}-ada")
        assert SECRET not in noted.detail
        assert "amount" not in noted.detail


async def test_a_member_may_continue_a_turn_at_its_step_limit_and_a_viewer_may_not() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay", max_steps=1, at_step_limit="ask")
        assert (view.gate.kind, view.gate.arguments) == ("limit", '{"max_steps":2}')
        with pytest.raises(Forbidden, match="member"):
            await access_of(house, "viewer").gates.resolve(sent.session, view.gate.id, yes(view))
        await access_of(house, "member").gates.resolve(sent.session, view.gate.id, yes(view))
        call = await gate_in(access_of(house, "owner"), sent.session)
        assert call.gate.kind == "call", "the call is asked about after the limit"


async def test_without_the_choice_of_the_client_the_step_limit_asks_nobody() -> None:
    async with a_house() as house:
        sent = await start_session(access_of(house, "member"), "pay", max_steps=1)
        await over(access_of(house, "owner"), sent)
        log = await house.app.store.events(sent.session)
        assert not [entry for entry in log if isinstance(entry.event, GateOpened)]


async def test_a_key_with_a_lower_role_answers_no_more_than_that_role() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        capped = Access(house, replace(somebody(role="member"), user="owner-ada"))
        with pytest.raises(Forbidden):
            await capped.gates.resolve(sent.session, view.gate.id, yes(view))


# For what was shown, and once ----------------------------------------------------------------------------------------


async def test_an_answer_is_for_the_bytes_that_were_shown() -> None:
    async with a_house() as house:
        (sent, view), (other, theirs) = await asking(house, "pay"), await asking(house, "pay")
        approver = access_of(house, "approver")
        texts: set[str] = set()
        for hash in (theirs.gate.hash, view.gate.hash[:-1] + "0", view.gate.hash.upper(), "x", " " + view.gate.hash):
            if hash == view.gate.hash:
                continue
            with pytest.raises(HashMismatch) as raised:
                await approver.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=hash, allow="once"))
            texts.add(str(raised.value))
        assert len(texts) == 1
        assert view.gate.hash[:8] not in texts.pop()
        # The gate of one session is not there in another.
        with pytest.raises(UnknownGate):
            await approver.gates.resolve(other.session, view.gate.id, yes(view))
        assert len((await approver.gates.page()).gates) == 2


async def test_the_same_answer_again_is_no_news_and_another_is_refused() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        approver = access_of(house, "approver")
        await approver.gates.resolve(sent.session, view.gate.id, yes(view))
        await approver.gates.resolve(sent.session, view.gate.id, yes(view))
        done = await over(approver, sent)
        await approver.gates.resolve(sent.session, view.gate.id, yes(view))  # also when it is long over
        for reply in ({"allow": None, "deny": True}, {"arguments": {"amount": 8}}, {"allow": "always"}):
            with pytest.raises(AnsweredOtherwise):
                await access_of(house, "owner").gates.resolve(sent.session, view.gate.id, yes(view, **reply))
        log = await house.app.store.events(sent.session)
        assert sum(isinstance(entry.event, GateResolved) for entry in log) == 1
        (paid,) = [part for part in done.messages[1].parts if isinstance(part, ToolPart)]
        assert paid.output is not None
        assert paid.output.text == "paid 7"


async def test_of_many_who_answer_at_once_one_is_first() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        replies = [yes(view) if at % 2 else yes(view, allow=None, deny=True) for at in range(40)]
        said_so = await asyncio.gather(
            *(access_of(house, "approver").gates.resolve(sent.session, view.gate.id, reply) for reply in replies),
            return_exceptions=True,
        )
        taken = [reply for reply, came in zip(replies, said_so, strict=True) if came is None]
        assert len(taken) == 20
        assert len({reply.allow for reply in taken}) == 1
        assert {type(came) for came in said_so if came is not None} == {AnsweredOtherwise}
        await over(access_of(house, "viewer"), sent)
        log = await house.app.store.events(sent.session)
        assert sum(isinstance(entry.event, GateResolved) for entry in log) == 1


async def test_nothing_is_answered_after_a_cancel() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        await access_of(house, "member").sessions.cancel_turn(sent.session, sent.turn, api.CancelTurn())
        with pytest.raises(GateClosed):
            await access_of(house, "approver").gates.resolve(sent.session, view.gate.id, yes(view))
        await over(access_of(house, "viewer"), sent)
        with pytest.raises(GateClosed):
            await access_of(house, "approver").gates.resolve(sent.session, view.gate.id, yes(view))


async def test_only_what_the_gate_offers_is_remembered() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        owner = access_of(house, "owner")
        for reply, error in (
            ({"allow": "always", "rule": Rule(tool="*", action="allow")}, AnswerUnfit),
            ({"allow": "once", "rule": view.gate.offers[0]}, ConfigError),
            ({"allow": "once", "everywhere": True}, AnswerUnfit),
            ({"allow": "once", "deny": True}, ConfigError),
            ({"allow": None}, ConfigError),
            ({"text": "x"}, AnswerUnfit),
        ):
            with pytest.raises(error):
                await owner.gates.resolve(sent.session, view.gate.id, yes(view, **reply))
        await owner.gates.resolve(sent.session, view.gate.id, yes(view, allow="always", rule=view.gate.offers[0]))
        await over(owner, sent)
        assert len((await owner.gates.grants(sent.session)).grants) == 1


async def test_what_holds_everywhere_is_revoked_by_an_owner() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        await access_of(house, "owner").gates.resolve(
            sent.session, view.gate.id, yes(view, allow="always", everywhere=True, within="tenant")
        )
        await over(access_of(house, "owner"), sent)
        (grant,) = (await access_of(house, "viewer").gates.grants(sent.session)).grants
        with pytest.raises(Forbidden, match="owner"):
            await access_of(house, "approver").gates.revoke_grant(sent.session, grant.id)
        await access_of(house, "owner").gates.revoke_grant(sent.session, grant.id)
        assert not (await access_of(house, "viewer").gates.grants(sent.session)).grants
        _, view = await asking(house, "pay")
        assert view.gate.tool == "pay"


async def test_what_holds_everywhere_is_for_the_person_who_asked_unless_an_owner_says_tenant() -> None:
    for within, is_allowed in (("", False), ("tenant", True)):
        async with a_house() as house:
            owner = access_of(house, "owner")
            sent, view = await asking(house, "pay")
            answer = yes(view, allow="always", everywhere=True, within=within)
            await owner.gates.resolve(sent.session, view.gate.id, answer)
            await over(owner, sent)
            again = await start_session(access_of(house, "member"), "pay")  # the same person, in another conversation
            assert (await over(owner, again)).phase.value == "completed"
            other = await start_session(access_of(house, "approver"), "pay")
            about = api.ExplainCall(tool="pay", arguments={"amount": 7}, session=other.session)
            explained = await access_of(house, "approver").admin.explain(about)
            assert (explained.action == "allow") == is_allowed
            shown = (await access_of(house, "viewer").admin.grants()).grants
            assert bool(shown) == is_allowed  # whose grant it is not does not see it


async def test_what_holds_everywhere_may_be_for_one_user_and_for_a_folder_only_where_there_is_one() -> None:
    folder = (AgentSpec("worker", TurnOptions(folder="/srv/project")),)
    for agents, within in ((AGENTS, "user"), (folder, "folder")):
        async with a_house(agents=agents) as house:
            owner = access_of(house, "owner")
            sent, view = await asking(house, "pay")
            answer = yes(view, allow="always", everywhere=True, within=within)
            if within == "user":
                with pytest.raises(ConfigError, match="no folder"):
                    await owner.gates.resolve(sent.session, view.gate.id, replace(answer, within="folder"))
            await owner.gates.resolve(sent.session, view.gate.id, answer)
            await over(owner, sent)
            (grant,) = (await owner.gates.grants(sent.session)).grants
            assert (grant.session, bool(grant.asker), grant.folder) == (
                "",
                within == "user",
                "/srv/project" if within == "folder" else "",
            )


async def test_a_grant_for_the_folder_of_the_server_holds_in_no_other_folder() -> None:
    async with a_house() as house:
        owner = access_of(house, "owner")
        house.folder = "/srv/one"
        sent, view = await asking(house, "pay")
        assert view.gate.folder == "/srv/one"
        answer = yes(view, allow="always", everywhere=True, within="folder")
        await owner.gates.resolve(sent.session, view.gate.id, answer)
        await over(owner, sent)
        ran_in: dict[str, bool] = {}
        for folder in ("/srv/one", "/srv/one/sub", "/srv", "/srv/two", ""):
            house.folder = folder
            again = await start_session(owner, "pay now")
            explained = await owner.admin.explain(
                api.ExplainCall(tool="pay", arguments={"amount": 7}, session=again.session)
            )

            async def look_again(sent: api.MessageReceipt = again) -> str:
                if (await owner.gates.page(sent.session)).gates:
                    return "asked"
                return "ran" if (await owner.sessions.turn(sent.session, sent.turn)).phase.is_terminal else ""

            ran_in[folder] = await wait_until(look_again) == "ran"
            assert (explained.action == "allow") == ran_in[folder], "the explanation says what happens"
        assert ran_in == {"/srv/one": True, "/srv/one/sub": False, "/srv": False, "/srv/two": False, "": False}


# Clients -------------------------------------------------------------------------------------------------------------


async def test_a_claim_is_its_makers_and_what_others_see_of_it_is_no_key_to_it() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "bell", clients=[BELL])
        mine, eve = access_of(house, "member"), Access(house, somebody(user="eve"))
        claim, hash = "a-name-nobody-guesses", view.gate.hash
        with pytest.raises(NotClaimed):
            await mine.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=hash, result="rung", claim=claim))
        assert (await mine.gates.claim(sent.session, view.gate.id, api.ClaimGate(hash=hash, claim=claim))).until > 0
        seen = (await gate_in(eve, sent.session)).claim
        assert seen is not None
        assert claim not in seen.by
        assert seen.by.startswith("member-ada~")
        with pytest.raises(ClaimedOtherwise):
            await eve.gates.claim(sent.session, view.gate.id, api.ClaimGate(hash=hash, claim=claim))
        for stolen in (seen.by, seen.by.split("~")[1], claim, ""):
            with pytest.raises(NotClaimed):
                await eve.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=hash, result="x", claim=stolen))
        with pytest.raises(HashMismatch):
            await mine.gates.claim(sent.session, view.gate.id, api.ClaimGate(hash="other", claim=claim))
        await mine.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=hash, result="rung", claim=claim))
        assert (await over(mine, sent)).phase.value == "completed"


async def test_no_client_claims_what_is_for_a_person() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "pay")
        with pytest.raises(AnswerUnfit):
            await access_of(house, "owner").gates.claim(
                sent.session, view.gate.id, api.ClaimGate(hash=view.gate.hash, claim="a-name-nobody-guesses")
            )


# Veils ---------------------------------------------------------------------------------------------------------------


async def everything(access: Access, sent: api.MessageReceipt) -> str:
    """All that somebody can read of a session, but for its stream."""
    shown: list[Any] = [
        await access.sessions.turn(sent.session, sent.turn),
        await access.sessions.messages(sent.session),
        await access.sessions.tree(sent.session),
        await access.log.page(sent.session),
        await access.log.queue(sent.session),
        await access.gates.page(sent.session),
        await access.gates.page(),
        await access.inbox(),
        await access.sessions.search(SECRET[:10]),
        await access.sessions.search("Done"),
    ]
    return msgspec.json.encode(shown).decode()


@pytest.mark.parametrize("reply", [{"allow": None, "deny": True}, {"allow": "once", "text": "a part of it"}])
async def test_a_result_that_is_reviewed_is_for_approvers_also_when_it_was_withheld(
    reply: dict[str, Any], tmp_path: Path
) -> None:
    async with a_house() as house:
        sent, view = await asking(house, "peek")
        for role in ("viewer", "member"):
            shown = await everything(access_of(house, role), sent)
            assert SECRET not in shown
            assert view.gate.hash not in shown
            assert view.gate.id in shown
            assert await access_of(house, role).follow(sent.session) is True
        assert SECRET in await everything(access_of(house, "approver"), sent)
        assert await access_of(house, "approver").follow(sent.session) is False
        with pytest.raises(Forbidden, match="approver"):
            await access_of(house, "member").sessions.export(sent.session, tmp_path / "open.zip")
        await access_of(house, "approver").gates.resolve(sent.session, view.gate.id, yes(view, **reply))
        await over(access_of(house, "viewer"), sent)
        assert SECRET not in await everything(access_of(house, "member"), sent)
        with pytest.raises(Forbidden, match="approver"):
            await access_of(house, "member").sessions.export(sent.session, tmp_path / "closed.zip")
        await access_of(house, "approver").sessions.export(sent.session, tmp_path / "out.zip")
        log = await house.app.store.events(sent.session)
        assert SECRET in repr(log)
        assert SECRET not in repr([redact_event(entry.event) for entry in log])


async def test_private_values_and_their_hash_are_for_approvers(tmp_path: Path) -> None:
    async with a_house() as house:
        member, approver = access_of(house, "member"), access_of(house, "approver")
        sent = await start_session(member, "whois")
        done = await over(approver, sent)
        (part,) = [part for part in done.messages[1].parts if isinstance(part, ToolPart)]
        assert part.output is not None
        assert part.output.private
        name = part.output.private
        assert name not in await everything(member, sent)
        assert name in await everything(approver, sent)
        assert PRIVATE.encode() in await approver.files.read(sent.session, name)
        from everturn.errors import UnknownFile

        with pytest.raises(UnknownFile, match=r"^there is no such file$"):
            await member.files.read(sent.session, name)
        with pytest.raises(Forbidden, match="approver"):
            await member.sessions.export(sent.session, tmp_path / "out.zip")


def test_what_has_nothing_to_hide_is_left_as_it_is() -> None:
    message = Message("m", None, "user", (TextPart("hi"),))
    gate = Gate("g", "t", "c", "pay", "{}", "h")
    for event in (GateOpened(turn="t", gate=gate), TurnStarted(turn="t", input=message), TurnStarted(turn="t")):
        assert redact_event(event) is event
    assert redact_gate(gate) is gate
    assert redact_message(message) is message
    settled = CallFinished(turn="t", call="c", state="completed", output=Output("x"))
    assert redact_event(settled) is settled


# Sub-agent runs -----------------------------------------------------------------------------------------------------------


async def test_a_gate_of_a_sub_turn_is_answered_in_the_session_above_and_its_own_is_only_read() -> None:
    async with a_house() as house:
        sent, view = await asking(house, "clerk")
        assert view.session != sent.session
        assert view.session.startswith(sent.session)
        for refused in (
            lambda: access_of(house, "member").sessions.send(view.session, api.NewMessage(text="x")),
            lambda: access_of(house, "owner").sessions.erase(view.session),
            lambda: access_of(house, "owner").sessions.export(view.session, Path("/nowhere")),
        ):
            with pytest.raises(Forbidden, match="sub-agent run"):
                await refused()
        below = await access_of(house, "viewer").sessions.get(view.session)
        assert (below.parent, below.by) == (sent.session, "member-ada")
        assert len((await access_of(house, "viewer").sessions.list()).sessions) == 1
        with pytest.raises(UnknownSession):
            await access_of(house, "owner", "bob").gates.resolve(view.session, view.gate.id, yes(view))
        other = await start_session(access_of(house, "member"), "hello")
        with pytest.raises(UnknownGate):  # it is below another session
            await access_of(house, "owner").gates.resolve(other.session, view.gate.id, yes(view))
        await access_of(house, "approver").gates.resolve(sent.session, view.gate.id, yes(view))
        assert (await over(access_of(house, "viewer"), sent)).phase.value == "completed"
