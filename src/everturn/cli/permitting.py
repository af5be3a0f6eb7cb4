"""`everturn permissions`: rules, and perhaps a call → what they say to it, and an exit code."""

from __future__ import annotations

import argparse
import asyncio

from everturn.cli.plain_chat import NO_STORE
from everturn.cli.saying import complain
from everturn.core.canonical import clean
from everturn.terminal import permissions as told


def permissions(options: argparse.Namespace) -> int:
    """Explain a call, or check a file.

    Raises:
        ConfigError: the rules, the tools or the store cannot be read; BadArguments: they do not fit the tool.
    """
    if options.about == "check":
        lines, code = told.check(options.permissions)
    elif options.session and not options.store:
        return complain(NO_STORE, 2)
    else:
        explained = told.explain(
            clean(options.tool),
            [clean(word) for word in options.arguments],
            tools=options.tools,
            rules=options.permissions,
            subjects=options.subject,
            store=options.store,
            session=clean(options.session),
        )
        lines, code = asyncio.run(explained)
    for line in lines:
        print(line)
    return code
