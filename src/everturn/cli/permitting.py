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
        lines, code = asyncio.run(explain(options))
    for line in lines:
        print(line)
    return code


def _tell(text: str) -> None:
    complain(text, 0)


async def explain(options: argparse.Namespace) -> told.Told:
    """Explain a call of `everturn run`: what is put together is put together by the same functions."""
    from everturn.cli.run_here import assemble, options_of, settle
    from everturn.cli.run_reading import config_file
    from everturn.config.loading import load
    from everturn.models.named import named
    from everturn.models.offline import OFFLINE

    loaded = load(config_file(options))
    spec = options_of(loaded, clean(options.agent))
    parts = await assemble(loaded, spec, options, _tell, is_demo=spec.model == OFFLINE)
    runtime = parts.runtime(named(OFFLINE), "")  # it is asked nothing
    try:
        await runtime.start()
        await settle(parts.tools, _tell)
        return await told.explain(
            clean(options.tool),
            [clean(word) for word in options.arguments],
            runtime,
            parts.options,
            subjects=options.subject,
            must_be_there=bool(options.tools),
            store=options.store,
            session=clean(options.session),
        )
    finally:
        await runtime.aclose()
