"""The definition of an inbound hook, and its check."""

from __future__ import annotations

import re
from typing import Final, Literal, get_args

from msgspec import Struct

from everturn.core.rate_limits import Priority
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError
from everturn.inbound_hooks.payload import paths_in
from everturn.inbound_hooks.signatures import Scheme, secret_problem

Action = Literal["send", "complete", "answer"]
"""What a delivery does: it starts a turn, finishes a `ctx.external`, or answers a gate."""

MAX_BYTES: Final = 256 * 1024  # of a body, by default
MOST_BYTES: Final = 5 * 2**20
MAX_TEXT: Final = 20_000  # characters
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class InboundHook(Struct, frozen=True, kw_only=True):
    """A URL, `/api/hooks/{name}`, at which another system delivers signed requests."""

    name: str
    scheme: Scheme
    secrets: tuple[str, ...]  # any of them; two while a secret is being replaced
    tenant: str = LOCAL
    action: Action = "send"
    when: dict[str, tuple[str, ...]] = {}  # path -> values; other deliveries are acknowledged and do nothing
    max_bytes: int = MAX_BYTES
    text: str = ""  # of send: the message; {{path}} is a field of the payload
    agent: str = ""  # "": the default agent
    session: str = ""  # key of the session, such as {{issue.id}}; "": a new session for each delivery
    fields: tuple[str, ...] = ()  # paths that the model reads; (): the whole payload
    by: str = ""  # the user whose authority its turns have; "": nobody's
    priority: Priority = "background"
    token: str = ""  # of complete: path of the token of `ctx.external(hook=…)`
    value: str = ""  # path of the value; "": the whole payload
    answer: str = ""  # of answer: path of the JSON text that the button had
    user: str = ""  # path of the sender's user id
    users: dict[str, str] = {}  # that id -> a user of the tenant

    def __repr__(self) -> str:
        """Without its secrets."""
        return (
            f"InboundHook(name={self.name!r}, scheme={self.scheme!r}, tenant={self.tenant!r}, action={self.action!r})"
        )


def check_hook(hook: InboundHook) -> None:
    """Check what can be checked without an app. Secrets are checked by `check_secrets`, where their values are known.

    Raises:
        ConfigError: something of it is not valid; the text says what is.
    """
    if not _NAME.fullmatch(hook.name):
        raise ConfigError(f"name={hook.name[:80]!r}: up to 64 letters, digits, - and _")
    for name, kind in (("scheme", Scheme), ("action", Action), ("priority", Priority)):
        if (value := getattr(hook, name)) not in get_args(kind):
            raise ConfigError(f"{name}={value!r}: one of {', '.join(get_args(kind))}")
    if not 0 < hook.max_bytes <= MOST_BYTES:
        raise ConfigError(f"max_bytes={hook.max_bytes}: 1 to {MOST_BYTES:,}")
    needed = {"send": ("text",), "complete": ("token",), "answer": ("answer", "user", "users")}[hook.action]
    for name in needed:
        if not getattr(hook, name):
            raise ConfigError(f'{name} is missing: a hook with action = "{hook.action}" needs {" and ".join(needed)}')
    if len(hook.text) > MAX_TEXT:
        raise ConfigError(f"text: at most {MAX_TEXT:,} characters")
    if hook.session and not paths_in(hook.session):
        raise ConfigError("session: name a field of the payload, as in {{issue.id}}; without it all share one session")


def check_secrets(hook: InboundHook) -> None:
    """Check the secrets.

    Raises:
        ConfigError: there is none, or one is too short.
    """
    if not hook.secrets:
        raise ConfigError(
            f"hooks.{hook.name}.secret is missing: a hook without a secret would accept requests from anyone"
        )
    for secret in hook.secrets:
        if problem := secret_problem(hook.scheme, secret):
            raise ConfigError(f"hooks.{hook.name}.secret: {problem}")
