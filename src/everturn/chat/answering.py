"""What a person says to a gate → the verdict that is admitted, or an error that says what can be said."""

from __future__ import annotations

from typing import Literal, TypedDict

from everturn.core.asking import WITHIN, Claimed, Gate, Verdict
from everturn.core.canonical import JsonObject, canonical, clean, clean_all
from everturn.core.commands import Answer, Take
from everturn.core.events import TurnStarted
from everturn.core.gates import until_of
from everturn.core.policy import Rule
from everturn.errors import ConfigError, UnknownSession
from everturn.wiring import Runtime

ONE_OF = (
    'a gate is answered with allow="once", with allow="always" where it offers that, with deny=True or '
    'deny="the reason", or with result="what came of it" when you have done it yourself: one of them'
)
NOTHING_TO_KEEP = "this gate offers nothing to remember, so it can be allowed only once: {why}"
FOR_EVER = 1e12  # seconds; a time beyond that is no date


class Reply(TypedDict, total=False):
    """What may be said to a gate; see `Turn.answer`."""

    allow: Literal["once", "always"] | Rule | None
    deny: str | bool | None
    arguments: JsonObject | None
    result: str | None
    text: str | None
    everywhere: bool
    until: float
    others: bool
    by: str
    failed: bool
    claim: str


async def answer(runtime: Runtime, session: str, tenant: str, gate: Gate, reply: Reply) -> bool:
    """Hand in an answer; False when it was given before."""
    if not isinstance(gate, Gate):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("answer the gate itself: event.gate, or one of chat.gates()")
    receipt = await runtime.command(
        Answer(
            key=runtime.ids.new("cmd"),
            session=await _where(runtime, session, gate),
            tenant=tenant,
            at=runtime.clock.now(),
            gate=gate.id,
            hash=gate.hash,
            verdict=verdict_of(runtime, gate, reply),
        )
    )
    return receipt.is_new


async def claim(runtime: Runtime, session: str, tenant: str, gate: Gate, by: str, lease: float) -> Claimed:
    """Claim a call for a client, or have more time for it."""
    if not isinstance(gate, Gate):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("claim the gate itself: event.gate, or one of chat.gates()")
    now, by = runtime.clock.now(), name_of(by)
    where = await _where(runtime, session, gate)
    key = runtime.ids.new("cmd")
    await runtime.command(
        Take(key=key, session=where, tenant=tenant, at=now, gate=gate.id, hash=gate.hash, by=by, lease=lease)
    )
    return Claimed(by, until_of(gate, now, lease))


async def _where(runtime: Runtime, session: str, gate: Gate) -> str:
    """Where a gate is answered: one that a sub-turn of this session asks, where it is asked; any other is not for us."""
    if gate.session in ("", session):
        return session
    try:
        first = next(iter(await runtime.store.events(gate.session, turn=gate.turn)), None)
    except UnknownSession:
        return session
    options = first.event.options if first is not None and isinstance(first.event, TurnStarted) else None
    is_below = options is not None and options.above is not None and options.above.session == session
    return gate.session if is_below else session


def verdict_of(runtime: Runtime, gate: Gate, reply: Reply) -> Verdict:
    """What is meant by a reply."""
    unknown = set(reply) - set(Reply.__annotations__)
    if unknown:
        raise TypeError(f"answer() knows no {', '.join(sorted(unknown))}; it knows {', '.join(Reply.__annotations__)}")
    allow, deny, result = reply.get("allow"), reply.get("deny"), reply.get("result")
    is_denied = deny is not None and deny is not False
    # Strictly: allow=False, from somebody's checkbox, must not allow.
    is_allowed = isinstance(allow, Rule) or allow in ("once", "always")
    if (allow is not None and not is_allowed) or is_allowed + is_denied + (result is not None) != 1:
        raise ConfigError(ONE_OF)
    done, worked = (None, True) if result is None else _pasted(result, gate)
    if _switch(reply, "failed"):
        if result is None:
            raise ConfigError("failed=True is said of a result: what was tried, and why it did not work")
        worked = False
    text = reply.get("text")
    if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"what is left of a result is text; this is a {type(text).__name__}")
    return Verdict(
        allowed=not is_denied,
        reason=clean(deny) if isinstance(deny, str) else "",
        arguments=_edited(runtime, gate, reply.get("arguments"), is_allowed),
        by=name_of(reply.get("by", "person")),
        result=done,
        failed=not worked,
        grant=_granted(gate, allow),
        everywhere=_switch(reply, "everywhere"),
        until=_time(reply.get("until", 0.0)),
        text=None if text is None else clean(text),
        others=_switch(reply, "others"),
        claim=name_of(reply.get("claim", "")),
    )


def name_of(by: str) -> str:
    """Who says it, as it is kept."""
    if not isinstance(by, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f'by="ada" says who it is; this is {by!r}')
    if by == "everturn" or by.startswith("plugin:"):
        raise ConfigError(f"by={by!r} is how the runtime and its plugins sign; say who answers")
    return clean(by)


def _switch(reply: Reply, name: Literal["everywhere", "others", "failed"]) -> bool:
    # Strictly: "no", from somebody's form, must not mean yes.
    value: object = reply.get(name, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is True or False, not {value!r}")
    return value


def _time(until: object) -> float:
    # What is not finite could be admitted, and never be read again.
    if isinstance(until, bool) or not isinstance(until, int | float) or not 0 <= until < FOR_EVER:
        raise ConfigError(
            f"until={until!r}: a time in seconds since 1970, as of time.time() + 3600 or a datetime's .timestamp(); "
            "0 is until it is revoked"
        )
    return float(until)


def _granted(gate: Gate, allow: Literal["once", "always"] | Rule | None) -> Rule | None:
    if allow == "always":
        if not gate.offers:
            raise ConfigError(NOTHING_TO_KEEP.format(why=gate.why or "a person is asked every time"))
        return gate.offers[0]
    return allow if isinstance(allow, Rule) else None


def _edited(runtime: Runtime, gate: Gate, arguments: JsonObject | None, is_allowed: bool) -> str:
    if arguments is None:
        return ""
    if not is_allowed or not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("arguments are edited with a dict of them, when the call is allowed")
    try:
        edit: JsonObject = clean_all(arguments)
        edited = canonical(edit)
    except Exception as error:
        raise ConfigError(f"arguments must be plain JSON: {error}") from None
    # What refers to other results is checked when those are put in its place.
    if (tool := runtime.tools.get(gate.tool)) is not None and "$ref{" not in edited and "$private{" not in edited:
        tool.validate(edit)
    return "" if edited == gate.arguments else edited  # saying the same again is no edit


def _pasted(result: str, gate: Gate) -> tuple[str, bool]:
    """What a person says came of a call, and whether it worked: in their own words, or in the form models are told in."""
    from everturn.models.prompted.paradigm import read_result

    if not isinstance(result, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a result is text, as the model reads it; this is a {type(result).__name__}")
    pasted = None if gate.kind in WITHIN else read_result(result)
    if pasted is None:
        return clean(result), True
    if pasted.name not in ("", gate.tool):
        raise ConfigError(f"this is the result of {pasted.name!r}, and the gate asks for {gate.tool!r}")
    return clean(pasted.text), pasted.worked
