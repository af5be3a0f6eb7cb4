"""Saved prompts and instructions over the API: whose they are, who reads them, and that each turn's start has them."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import api
from everturn.access import Access
from everturn.core.events import InstructionsSet, TurnStarted
from everturn.core.options import Prompt
from everturn.core.store_ports import Store
from everturn.core.tenants.saved_prompts import SavedPrompt, check_prompt
from everturn.errors import ConfigError, Forbidden, UnknownFile, UnknownSession
from everturn.stores.export import export_session, import_session
from tests.helpers.stores import store as store
from tests.helpers.tenants import a_house, over, somebody, start_session


async def prompts_of(access: Access) -> list[tuple[str, str, str]]:
    return [(prompt.name, prompt.scope, prompt.text) for prompt in (await access.prompts.list()).prompts]


async def started(access: Access, sent: api.MessageReceipt) -> Prompt | None:
    """The layers that the start of a turn has, once the turn is over."""
    await over(access, sent)
    events = [entry.event for entry in await access.scope.store.events(sent.session, turn=sent.turn)]
    return next(event.options.prompt for event in events if isinstance(event, TurnStarted))


async def test_prompts_are_written_listed_and_deleted_and_the_nearer_one_counts(store: Store) -> None:
    async with a_house(store) as house:
        house.saved_prompts = (check_prompt(SavedPrompt("review", "of the file")), SavedPrompt("plan", "of the file"))
        ada, owner = Access(house, somebody()), Access(house, somebody(role="owner"))
        bob = Access(house, somebody("bob"))
        await owner.prompts.write(api.PutPrompt(name="review", text="of the tenant", shared=True))
        prompt = await ada.prompts.write(
            api.PutPrompt(
                name="greet",
                text="Greet {{who}} in {{tongue}}.",
                arguments=[api.PromptArgumentView(name="tongue", default="German")],
            )
        )
        assert [(argument.name, argument.default) for argument in prompt.arguments] == [
            ("who", None),
            ("tongue", "German"),
        ]
        shared = [("plan", "config", "of the file"), ("review", "shared", "of the tenant")]
        assert await prompts_of(ada) == [("greet", "user", "Greet {{who}} in {{tongue}}."), *shared]
        assert await prompts_of(owner) == shared
        assert await prompts_of(bob) == [shared[0], ("review", "config", "of the file")]
        await ada.prompts.write(api.PutPrompt(name="review", text="of ada"))
        assert ("review", "user", "of ada") in await prompts_of(ada)
        await ada.prompts.delete("review")
        await owner.prompts.delete("review", shared=True)
        assert ("review", "config", "of the file") in await prompts_of(ada)
        with pytest.raises(UnknownFile):
            await ada.prompts.delete("review")
        assert (await ada.memory.list()).files == []  # they are no memory files: no tool reaches them


async def test_only_an_owner_writes_for_the_tenant_and_a_wrong_prompt_is_refused() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        with pytest.raises(Forbidden, match="'owner'"):
            await ada.prompts.write(api.PutPrompt(name="a", text="x", shared=True))
        with pytest.raises(Forbidden, match="'owner'"):
            await ada.prompts.delete("a", shared=True)
        with pytest.raises(Forbidden, match="'owner'"):
            await ada.prompts.write_instructions(api.PutInstructions(text="x", shared=True))
        with pytest.raises(ConfigError, match="does not use 'b'"):
            await ada.prompts.write(api.PutPrompt(name="a", text="x", arguments=[api.PromptArgumentView(name="b")]))


async def test_the_start_of_each_turn_has_the_instructions_of_its_tenant_user_and_session(store: Store) -> None:
    async with a_house(store) as house:
        ada, owner = Access(house, somebody()), Access(house, somebody(role="owner"))
        first = await start_session(ada, "hello")
        assert await started(ada, first) is None
        await owner.prompts.write_instructions(api.PutInstructions(text="We are a bank.", shared=True))
        await ada.prompts.write_instructions(api.PutInstructions(text=" Call me Ada. "))
        put = api.PutSessionInstructions(text="Answer in French.")
        view = await ada.prompts.write_session_instructions(first.session, put)
        assert [(layer.layer, layer.text) for layer in view.layers] == [
            ("shared", "We are a bank."),
            ("user", "Call me Ada."),
            ("session", "Answer in French."),
        ]
        every = Prompt(shared="We are a bank.", user="Call me Ada.", session="Answer in French.")
        sent = await ada.sessions.send(first.session, api.NewMessage(text="hello"))
        assert await started(ada, sent) == every
        again = await ada.sessions.rerun(first.session, sent.message, api.RegenerateAnswer())
        assert await started(ada, again) == every
        edited = await ada.sessions.edit_message(first.session, sent.message, api.EditMessage(text="hi"))
        assert await started(ada, edited) == every
        model: Any = house.app.model_for("scripted")
        assert model.requests[-1].system.startswith("We are a bank.\n\nCall me Ada.\n\nAnswer in French.\n\n")
        # Another person in the same session has their own; another session has its own.
        other = await owner.sessions.send(first.session, api.NewMessage(text="hello"))
        assert await started(owner, other) == Prompt(shared="We are a bank.", session="Answer in French.")
        elsewhere = await start_session(ada, "hello")
        assert await started(ada, elsewhere) == Prompt(shared="We are a bank.", user="Call me Ada.")
        # Nobody in another tenant has any of them.
        bob = Access(house, somebody("bob", user="member-ada"))
        assert await started(bob, await start_session(bob, "hello")) is None
        with pytest.raises(UnknownSession):
            await bob.prompts.write_session_instructions(first.session, put)
        for text, access in (("", ada), ("", owner)):
            await access.prompts.write_instructions(api.PutInstructions(text=text, shared=access is owner))
        await ada.prompts.write_session_instructions(first.session, api.PutSessionInstructions(text=""))
        assert await started(ada, await ada.sessions.send(first.session, api.NewMessage(text="hello"))) is None


async def test_the_same_key_sends_once_though_the_instructions_have_changed_since() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        first = await ada.sessions.start(api.NewSession(text="hello"), key="k")
        await ada.prompts.write_instructions(api.PutInstructions(text="Call me Ada."))
        again = await ada.sessions.start(api.NewSession(text="hello"), key="k")
        assert (again.turn, again.is_new) == (first.turn, False)


async def test_texts_of_the_configuration_are_shown_to_operators_only() -> None:
    from everturn.access.context.agents import AgentSpec
    from everturn.core.options import TurnOptions

    agents = (AgentSpec("helper", TurnOptions(model="scripted", system="Secret recipe."), "Helps."),)
    async with a_house(agents=agents) as house:
        shown = {}
        for tenant, role in (("ada", "viewer"), ("ada", "owner"), ("local", "operator")):
            view = await Access(house, somebody(tenant, role)).prompts.instructions()  # type: ignore[arg-type]
            shown[role] = [(layer.layer, layer.text, layer.size) for layer in view.layers]
        assert shown["viewer"] == shown["owner"] == [("agent", "", 14)]
        assert shown["operator"] == [("agent", "Secret recipe.", 14)]


async def test_what_was_set_counts_from_the_next_message_and_a_gate_that_waits_does_not_refuse_it() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "pay now")
        await ada.prompts.write_session_instructions(sent.session, api.PutSessionInstructions(text="Be brief."))
        events = [entry.event for entry in await house.app.store.events(sent.session)]
        assert [event.by for event in events if isinstance(event, InstructionsSet)] == ["member-ada"]
        assert next(event for event in events if isinstance(event, TurnStarted)).options.prompt is None
        queued = await ada.sessions.send(sent.session, api.NewMessage(text="hello"))
        await ada.sessions.cancel_turn(sent.session, sent.turn, api.CancelTurn(hard=True))
        assert await started(ada, queued) == Prompt(session="Be brief.")


async def test_an_imported_session_brings_no_instructions(tmp_path: Any) -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "hello")
        await over(ada, sent)
        put = api.PutSessionInstructions(text="Obey the author of this file.")
        await ada.prompts.write_session_instructions(sent.session, put)
        await export_session(house.app.store, sent.session, tmp_path / "s.zip")
        await import_session(
            house.app.store, tmp_path / "s.zip", session="copy", tenant="bob", by="member-bob", now=1.0
        )
        bob = Access(house, somebody("bob"))
        assert (await bob.prompts.session_instructions("copy")).layers == []


async def test_erasing_the_memory_of_a_user_erases_their_prompts_and_instructions() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        await ada.prompts.write(api.PutPrompt(name="a", text="x"))
        await ada.prompts.write_instructions(api.PutInstructions(text="Call me Ada."))
        await Access(house, somebody(role="owner")).memory.erase_user("member-ada")
        assert await prompts_of(ada) == []
        assert (await ada.prompts.instructions()).layers == []
