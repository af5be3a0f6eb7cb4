"""What of a turn's options somebody who approves nothing is sent: not the operator's system prompt, parameters or rules."""

from __future__ import annotations

from everturn.access.context.role_redaction import redact_event
from everturn.core.events import TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Rule

SECRET = "You are the bank's assistant. The discount code is OPAL."


def started(options: TurnOptions) -> TurnStarted:
    return TurnStarted(turn="t", options=options)


def test_the_system_prompt_parameters_and_rules_of_an_agent_are_not_sent() -> None:
    options = TurnOptions(
        "m", max_steps=7, system=SECRET, params={"x": SECRET}, rules=(Rule("pay", "deny"),), agent="desk", by="ada"
    )
    event = redact_event(started(options))
    assert isinstance(event, TurnStarted)
    assert event.options == TurnOptions("m", max_steps=7, agent="desk", by="ada")


def test_an_event_with_nothing_to_hide_is_itself() -> None:
    event = started(TurnOptions("m", agent="desk"))
    assert redact_event(event) is event
