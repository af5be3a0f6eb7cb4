"""Arguments of the commands for stored sessions: sessions, export and import."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.server import FILE

SESSIONS: Final = """\
List conversations, most recent first, with their state, id and title.

The command reads the store that `everturn serve` and `everturn chat` use here, another --store, or a server (--connect). For a
server, set an API key in EVERTURN_TOKEN; on the same machine, the operator's token is used automatically.
"""
WHERE: Final = "store: a file such as talks.db, or a database URL (default: the configured store)"
CONNECT: Final = "use a server, such as http://127.0.0.1:8000; its API key is EVERTURN_TOKEN"
EXPORT: Final = """\
Write a conversation to one file: its log, its messages and its files. With --turn, export one turn, which
`everturn replay` can replay. The file contains private values.
"""
IMPORT: Final = """\
Create a conversation from a file that `everturn export` wrote. Unfinished turns in the file are ended and do not continue.
Approvals and grants in the file are not valid here.
"""
CHANGES: Final = (
    ("rename", "give a conversation another title; it is never replaced automatically", '"Trip to Lisbon"'),
    ("pin", "list a conversation before the others", ""),
    ("unpin", "list a conversation by its time again", ""),
    ("archive", "leave a conversation out of lists; it is kept, and can be continued", ""),
    ("unarchive", "list an archived conversation again", ""),
    ("label", "set the labels of a conversation", "work travel"),
)
SHARE: Final = """\
Let a user, or everybody who has at least a role, see a conversation of yours on a server. Without either, list who has
access. Sharing it again with the same user or role changes what they may do.
"""
LINK: Final = """\
Create a read-only link to a conversation of yours. Who can log in to the server and has the link can read the
conversation. The link is printed once; `everturn sessions unshare` revokes it.
"""
UNSHARE: Final = """\
Revoke a share or a link. Those who lose access are disconnected within five seconds.
"""
CODES: Final = "exit codes: 0 done, 2 no such session, store, file or server; nothing was changed"


def add_session_commands(commands: Any) -> None:
    """Add the session commands to the command line."""
    _add_sessions(commands)
    export = add_command(
        commands,
        "export",
        "export a conversation, or one turn of it, to a file",
        EXPORT,
        examples=(
            "everturn export SESSION",
            "everturn export SESSION -o talk.zip --store talks.db",
            "everturn export SESSION --turn last -o turn.jsonl",
            "everturn export SESSION -o - | ssh elsewhere everturn import -",
        ),
        codes=CODES,
    )
    export.add_argument("session", metavar="SESSION", help="session id, as `everturn sessions` shows it")
    export.add_argument(
        "-o", "--output", metavar="FILE", default="", help="file to write (default: SESSION.zip; -: stdout)"
    )
    export.add_argument("--turn", metavar="TURN", default="", help="export one turn: its id, or `last`")
    export.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_store_options(export)
    import_file = add_command(
        commands,
        "import",
        "import a conversation from an exported file",
        IMPORT,
        examples=(
            "everturn import talk.zip",
            "everturn import talk.zip --store talks.db --session other",
            "everturn import talk.zip --connect http://127.0.0.1:8000",
        ),
        codes=CODES,
    )
    import_file.add_argument("file", metavar="FILE", help="file that `everturn export` wrote; - is stdin")
    import_file.add_argument("--session", metavar="ID", default="", help="session id here (default: unchanged)")
    add_store_options(import_file)


def _add_sessions(commands: Any) -> None:
    sessions = add_command(
        commands,
        "sessions",
        "list, search, show, rename, share, archive and erase conversations",
        SESSIONS,
        examples=(
            "everturn sessions",
            'everturn sessions --search "lunch at noon"',
            "everturn sessions show SESSION",
            'everturn sessions rename SESSION "Trip to Lisbon"',
            "everturn sessions share SESSION --user ada --connect https://chat.example.com",
            "everturn sessions archive SESSION",
            "everturn sessions erase SESSION --store talks.db",
            "everturn sessions --json | jq -r 'select(.state == \"waiting\").id'",
        ),
        codes=CODES,
    )
    sessions.add_argument(
        "--search", metavar="WORDS", default="", help="only conversations with messages that contain these words"
    )
    sessions.add_argument(
        "--limit", metavar="N", type=parse_positive_int, default=20, help="maximum number of sessions (default: 20)"
    )
    sessions.add_argument(
        "--before", metavar="CURSOR", default="", help="cursor of the next page, as the last page printed it"
    )
    sessions.add_argument("--archived", action="store_true", help="list the archived conversations instead")
    sessions.add_argument("--label", metavar="LABEL", default="", help="only conversations with this label")
    sessions.add_argument("--json", action="store_true", help="print JSON, one object per line")
    add_store_options(sessions)
    kinds = sessions.add_subparsers(
        dest="about", metavar="show|rename|pin|unpin|archive|unarchive|label|share|unshare|link|erase"
    )
    show = add_command(
        kinds,
        "show",
        "print the messages of a conversation",
        examples=(
            "everturn sessions show SESSION | less",
            "everturn sessions show SESSION --json",
            "everturn sessions show SESSION --cache",
        ),
        codes=CODES,
    )
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, one message per line")
    show.add_argument(
        "--cache",
        action="store_true",
        help="instead, print what each request read from the provider's prompt cache, and why it was less than expected",
    )
    erase = add_command(
        kinds,
        "erase",
        "erase a conversation permanently, after a confirmation",
        examples=("everturn sessions erase SESSION", "everturn sessions erase SESSION --yes"),
        codes="exit codes: 0 erased, 1 you declined, 2 no such session, or a turn is running in it",
    )
    erase.add_argument("--yes", action="store_true", help="do not ask")
    changes = [
        add_command(kinds, name, about, examples=(f"everturn sessions {name} SESSION {words}".rstrip(),), codes=CODES)
        for name, about, words in CHANGES
    ]
    shared = _add_sharing(kinds)
    for command in (show, erase, *changes, *shared):
        command.add_argument("session", metavar="SESSION", help="session id, as `everturn sessions` shows it")
        add_store_options(command, is_below=True)
    changes[0].add_argument("title", metavar="TITLE", nargs="+", help="the new title")
    changes[-1].add_argument("labels", metavar="LABEL", nargs="*", help="all labels of it; none: remove them")
    shared[1].add_argument("share", metavar="SHARE", help="user, role, or id of a share or link, as `share` lists them")


def _add_sharing(kinds: Any) -> list[argparse.ArgumentParser]:
    share = add_command(
        kinds,
        "share",
        "share a conversation with a user or a role, or list who has access",
        SHARE,
        examples=(
            "everturn sessions share SESSION --connect https://chat.example.com",
            "everturn sessions share SESSION --user ada --write",
            "everturn sessions share SESSION --role member --days 7",
        ),
        codes=CODES,
    )
    subject = share.add_mutually_exclusive_group()
    subject.add_argument("--user", metavar="USER", default="", help="share it with this user")
    roles = ("viewer", "member", "approver", "owner")
    subject.add_argument("--role", choices=roles, help="share it with everybody who has at least this role")
    share.add_argument("--write", action="store_true", help="let them send messages, too")
    unshare = add_command(
        kinds,
        "unshare",
        "revoke a share or a link",
        UNSHARE,
        examples=("everturn sessions unshare SESSION ada", "everturn sessions unshare SESSION link_4b1d0c2e"),
        codes=CODES,
    )
    link = add_command(
        kinds,
        "link",
        "create a read-only link to a conversation",
        LINK,
        examples=("everturn sessions link SESSION --days 7 --connect https://chat.example.com",),
        codes=CODES,
    )
    for command in (share, link):
        command.add_argument(
            "--days",
            metavar="N",
            type=parse_positive_int,
            default=0,
            help="it ends after so many days (default: never)",
        )
    return [share, unshare, link]


def add_store_options(command: argparse.ArgumentParser, *, is_below: bool = False) -> None:
    """Add the options that select the store or server.

    A subcommand has no defaults of its own, so that it keeps the values given to its parent command.
    """
    group = command.add_argument_group("storage")

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if is_below else value

    group.add_argument("--store", metavar="FILE", default=default(""), help=WHERE)
    group.add_argument("--config", metavar="FILE", default=default(None), help=FILE)
    group.add_argument("--connect", metavar="URL", default=default(""), help=CONNECT)
    group.add_argument("--tenant", metavar="ID", default=default("local"), help="tenant, in a store (default: local)")
