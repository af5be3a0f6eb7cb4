"""Gate replies: validates the keyword arguments of an answer, and builds the `GateResolution` that is admitted."""

from __future__ import annotations

from typing import Literal, TypedDict, cast, get_args

from everturn.base_app import BaseApp
from everturn.core.canonical_json import JsonObject, encode_canonical, replace_surrogates, replace_surrogates_in
from everturn.core.commands import ClaimCall, ResolveGate
from everturn.core.events import TurnStarted
from everturn.core.gate_rows import claim_end
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, CallClaim, Gate, GateResolution, GrantLimit
from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, UnknownSession

REPLY_HINT = (
    'a gate is answered with allow="once", with allow="always" where it offers that, with deny=True or '
    'deny="the reason", or with result="the result" if you ran it yourself: one of them'
)
NO_OFFERS = "this gate offers nothing to remember, so it can be allowed only once: {why}"
MAX_TIME = 1e12  # seconds; later times are not valid dates


class GateReply(TypedDict, total=False):
    """The keyword arguments of an answer; see `Turn.answer`."""

    allow: Literal["once", "always"] | Rule | None
    deny: str | bool | None
    arguments: JsonObject | None
    result: str | None
    text: str | None
    everywhere: bool
    within: GrantLimit
    until: float
    others: bool
    stop: bool
    by: str
    failed: bool
    claim: str


async def answer_gate(app: BaseApp, session: str, tenant: str, gate: Gate, reply: GateReply) -> bool:
    """Admit an answer; False if the same answer was given before."""
    if not isinstance(gate, Gate):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("answer the gate itself: event.gate, or one of chat.gates()")
    gate_session, resolution = await _session_of(app, session, gate), resolution_of(app, gate, reply)
    if resolution.within:
        await _check_limit(app, gate_session, gate, resolution.within)
    receipt = await app.command(
        ResolveGate(
            key=app.ids.new("cmd"),
            session=gate_session,
            tenant=tenant,
            at=app.clock.now(),
            gate=gate.id,
            hash=gate.hash,
            resolution=resolution,
        )
    )
    return receipt.is_new


async def _check_limit(app: BaseApp, session: str, gate: Gate, within: GrantLimit) -> None:
    """Refuse a grant for the user or the folder of a turn that has none."""
    first = next(iter(await app.store.events(session, turn=gate.turn)), None)
    options = first.event.options if first is not None and isinstance(first.event, TurnStarted) else TurnOptions()
    if within == "user" and not options.by:
        raise ConfigError('scope="user": the turn has no user; pass one with chat.send(…, by="ada")')
    if within == "folder" and not options.folder:
        raise ConfigError(
            'scope="folder": the turn has no folder; app.chat(…, options=TurnOptions(folder="…")) names it'
        )


async def claim_call(app: BaseApp, session: str, tenant: str, gate: Gate, by: str, lease: float) -> CallClaim:
    """Claim a call for a client, or extend its claim."""
    if not isinstance(gate, Gate):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("claim the gate itself: event.gate, or one of chat.gates()")
    now, by = app.clock.now(), checked_name(by)
    gate_session = await _session_of(app, session, gate)
    key = app.ids.new("cmd")
    await app.command(
        ClaimCall(
            key=key, session=gate_session, tenant=tenant, at=now, gate=gate.id, hash=gate.hash, by=by, lease=lease
        )
    )
    return CallClaim(by, claim_end(gate, now, lease))


async def _session_of(app: BaseApp, session: str, gate: Gate) -> str:
    """The session in which to answer a gate: that of a sub-agent run of this session, otherwise this session."""
    if gate.session in ("", session):
        return session
    try:
        first = next(iter(await app.store.events(gate.session, turn=gate.turn)), None)
    except UnknownSession:
        return session
    options = first.event.options if first is not None and isinstance(first.event, TurnStarted) else None
    is_below = options is not None and options.lineage is not None and options.lineage.session == session
    return gate.session if is_below else session


def resolution_of(app: BaseApp, gate: Gate, reply: GateReply) -> GateResolution:
    """Validate a reply and build its resolution.

    Raises:
        ConfigError: the reply is invalid; the text says what is valid.
    """
    unknown = set(reply) - set(GateReply.__annotations__)
    if unknown:
        raise TypeError(
            f"answer() does not accept {', '.join(sorted(unknown))}; it knows {', '.join(GateReply.__annotations__)}"
        )
    allow, deny, result = reply.get("allow"), reply.get("deny"), reply.get("result")
    is_denied = deny is not None and deny is not False
    # Strictly: allow=False, from a checkbox, must not allow.
    is_allowed = isinstance(allow, Rule) or allow in ("once", "always")
    if (allow is not None and not is_allowed) or is_allowed + is_denied + (result is not None) != 1:
        raise ConfigError(REPLY_HINT)
    manual_result, succeeded = (None, True) if result is None else _parse_result(result, gate)
    if _checked_flag(reply, "failed"):
        if result is None:
            raise ConfigError("failed=True needs a result: what was tried, and why it did not work")
        succeeded = False
    text = reply.get("text")
    if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a redacted result must be text; this is a {type(text).__name__}")
    return GateResolution(
        allowed=not is_denied,
        reason=replace_surrogates(deny) if isinstance(deny, str) else "",
        arguments=_edited_arguments(app, gate, reply.get("arguments"), is_allowed),
        by=checked_name(reply.get("by", "person")),
        result=manual_result,
        failed=not succeeded,
        grant=_grant_rule(gate, allow),
        everywhere=_checked_flag(reply, "everywhere"),
        within=_checked_limit(reply.get("within", "")),
        until=_checked_time(reply.get("until", 0.0)),
        text=None if text is None else replace_surrogates(text),
        others=_checked_flag(reply, "others"),
        stop=_checked_flag(reply, "stop"),
        claim=checked_name(reply.get("claim", "")),
    )


def checked_name(by: str) -> str:
    """The name of the answering person, as it is stored."""
    if not isinstance(by, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f'by must be a user id, such as by="ada", not {by!r}')
    if by == "everturn" or by.startswith("plugin:"):
        raise ConfigError(
            f"by={by!r} is reserved for the runtime and its plugins; pass the id of the person who answers"
        )
    return replace_surrogates(by)


def _checked_flag(reply: GateReply, name: Literal["everywhere", "others", "stop", "failed"]) -> bool:
    # Strictly: "no", from a form, must not mean yes.
    value: object = reply.get(name, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, not {value!r}")
    return value


def _checked_limit(within: object) -> GrantLimit:
    if within not in get_args(GrantLimit):
        raise ConfigError(f'within={within!r}: "user" or "folder", together with everywhere=True')
    return cast("GrantLimit", within)


def _checked_time(until: object) -> float:
    # A value that is not finite could be admitted, but not be decoded again.
    if isinstance(until, bool) or not isinstance(until, int | float) or not 0 <= until < MAX_TIME:
        raise ConfigError(
            f"until={until!r}: a time in seconds since 1970, as of time.time() + 3600 or a datetime's .timestamp(); "
            "0: until it is revoked"
        )
    return float(until)


def _grant_rule(gate: Gate, allow: Literal["once", "always"] | Rule | None) -> Rule | None:
    if allow == "always":
        if not gate.offers:
            raise ConfigError(NO_OFFERS.format(why=gate.why or "a person is asked every time"))
        return gate.offers[0]
    return allow if isinstance(allow, Rule) else None


def _edited_arguments(app: BaseApp, gate: Gate, arguments: JsonObject | None, is_allowed: bool) -> str:
    if arguments is None:
        return ""
    if not is_allowed or not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("arguments must be a dict, and need an answer that allows the call")
    try:
        edit: JsonObject = replace_surrogates_in(arguments)
        edited = encode_canonical(edit)
    except Exception as error:
        raise ConfigError(f"arguments must be plain JSON: {error}") from None
    # Arguments with references are validated when the references are replaced.
    if (tool := app.find_gate_tool(gate)) is not None and "$ref{" not in edited and "$private{" not in edited:
        tool.validate(edit)
    return "" if edited == gate.arguments else edited  # the same arguments are not an edit


def _parse_result(result: str, gate: Gate) -> tuple[str, bool]:
    """A submitted result and whether it succeeded: as plain text, or in the format of prompted tool results."""
    from everturn.models.prompted.tool_format import read_result

    if not isinstance(result, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a result must be text, as the model reads it; this is a {type(result).__name__}")
    parsed = None if gate.kind in GATE_KINDS_OF_RUNNING_TOOL else read_result(result)
    if parsed is None:
        return replace_surrogates(result), True
    if parsed.name not in ("", gate.tool):
        raise ConfigError(f"this is the result of {parsed.name!r}, and the gate asks for {gate.tool!r}")
    return replace_surrogates(parsed.text), parsed.worked
