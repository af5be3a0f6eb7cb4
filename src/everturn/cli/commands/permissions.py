"""`everturn permissions`: explains what the rules decide about a call, or checks a file of rules."""

from __future__ import annotations

import argparse
import asyncio

from everturn.cli.commands.plain_chat import NO_STORE
from everturn.cli.output import print_error
from everturn.core.canonical_json import replace_surrogates
from everturn.terminal.text import permissions as told


def permissions(options: argparse.Namespace) -> int:
    """Explain a call, or check a file of rules, and return the exit code.

    Raises:
        ConfigError: the rules, the tools or the store cannot be read.
        BadArguments: the arguments do not fit the tool.
    """
    if options.about == "check":
        lines, code = told.check_rules(options.permissions)
    elif options.session and not options.store:
        return print_error(NO_STORE, 2)
    else:
        lines, code = asyncio.run(explain(options))
    for line in lines:
        print(line)
    return code


def _print_note(text: str) -> None:
    print_error(text, 0)


async def explain(options: argparse.Namespace) -> told.PermissionsOutput:
    """Explain a call as `everturn run` would decide it: the same functions assemble tools, rules and options.

    In a trusted folder these include the folder's files and shell.
    """
    from msgspec.structs import replace

    from everturn.cli.config_options import config_file
    from everturn.cli.run.folder import apply_run_options, find_run_folder, make_run_agent
    from everturn.cli.run.local import assemble_run_parts, find_agent, make_agents_for, wait_for_mcp_servers
    from everturn.config.agents import agent_tables
    from everturn.config.load import load_config
    from everturn.models.offline import OFFLINE
    from everturn.models.registry import get_model

    loaded = load_config(config_file(options))
    folder = find_run_folder(options, loaded)
    agent, model = find_agent(loaded, replace_surrogates(options.agent)), get_model(OFFLINE)  # it is never called
    loaded = apply_run_options(loaded, agent, folder, None)
    agents = make_agents_for(loaded, agent, model, lambda _: model)
    is_demo = agent_tables(loaded)[agent].model == OFFLINE
    parts = await assemble_run_parts(loaded, agents, options, _print_note, is_demo=is_demo)
    app = parts.app(model, "")
    try:
        if folder is not None:
            definition, _ = await asyncio.to_thread(make_run_agent, folder, loaded, model, app)
            app.add_agent(definition)
            parts = replace(parts, options=parts.options_of(definition, options))
        await app.start()
        await wait_for_mcp_servers(parts.tools, _print_note)
        return await told.explain_call(
            replace_surrogates(options.tool),
            [replace_surrogates(word) for word in options.arguments],
            app,
            parts.options,
            subjects=options.subject,
            must_be_there=bool(options.tools),
            store=options.store,
            session=replace_surrogates(options.session),
        )
    finally:
        await app.aclose()
