"""`everturn sessions share`, `unshare` and `link`: who may see a conversation on a server."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Final

from everturn import api
from everturn.cli.connect_token import load_connect_token
from everturn.client import RemoteSession, Server
from everturn.errors import ConfigError, UnknownSession
from everturn.terminal.text.screen import escape_unprintable

DAY: Final = 86_400.0  # seconds
LEVELS: Final = {"read": "can read", "write": "can read and write"}


async def change_sharing(options: argparse.Namespace) -> int:
    """Share a conversation, list its shares, revoke one, or create a link."""
    if not options.connect:
        raise ConfigError(
            "only conversations of a server can be shared: name it with --connect URL. A local store has one user, you"
        )
    async with Server(options.connect, load_connect_token(options)) as server:
        session = server.session(options.session)
        try:
            if options.about == "link":
                await _create_link(session, options)
            elif options.about == "unshare":
                await _revoke(session, options.share)
            elif options.user or options.role:
                await _share(session, options)
            else:
                print("\n".join(render_sharing(await session.sharing.get())))
        except UnknownSession:
            more = f"`everturn sessions --connect {options.connect}` lists them"
            raise UnknownSession(f"there is no session {options.session!r} at {options.connect}; {more}") from None
    return 0


async def _share(session: RemoteSession, options: argparse.Namespace) -> None:
    level = "write" if options.write else "read"
    made = await session.sharing.share(user=options.user, role=options.role, level=level, expires=_expires(options))
    print(f"{escape_unprintable(session.id)}: {_describe(made)}")


async def _create_link(session: RemoteSession, options: argparse.Namespace) -> None:
    made = await session.sharing.create_link(expires=_expires(options))
    print(f"{options.connect.rstrip('/')}/#/link/{made.link}")


async def _revoke(session: RemoteSession, name: str) -> None:
    shares = (await session.sharing.get()).shares
    found = [share for share in shares if name in (share.id, share.name) and share.kind != "admin"]
    if not found:
        raise ConfigError(f"there is no share {name!r}; `everturn sessions share {session.id}` lists them")
    for share in found:
        await session.sharing.revoke(share.id)
        print(f"{escape_unprintable(session.id)} is no longer shared: {_describe(share)}")


def _expires(options: argparse.Namespace) -> float:
    return time.time() + options.days * DAY if options.days else 0.0


def render_sharing(sharing: api.SharingView) -> Iterable[str]:
    """Who has access, a line each."""
    yield f"author: {escape_unprintable(sharing.author) or 'the owners of the tenant'}"
    if sharing.level != "manage":
        yield f"you: {LEVELS[sharing.level]}"
    for share in sharing.shares:
        yield f"{share.id}  {_describe(share)}"


def _describe(share: api.ShareView) -> str:
    name = escape_unprintable(share.name)
    if share.kind == "admin":
        text = f"{name} opened it as administrator: {escape_unprintable(share.reason)}"
    elif share.kind == "link":
        text = "link, can read"
    else:
        audience = f"everybody with at least the role {name}" if share.kind == "role" else name
        text = f"{audience} {LEVELS[share.level]}" + (", by a link" if share.via else "")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(share.expires))
    return f"{text}, until {when}" if share.expires else text
