"""Model check: which configured and local models can be used. Of an API key only the name is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from everturn.cli.doctor.checks import DoctorCheck, make_printable
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.api import SetupView
    from everturn.config.load import LoadedConfig

ABOUT: Final = "Models"
SHOWN: Final = 3  # models shown per server
BEGIN: Final = "set a key, such as ANTHROPIC_API_KEY; or start Ollama; or name a model: --model"
OTHER: Final = "do that, or name another model: --model, or EVERTURN_MODEL, or model under [agents.NAME]"


def check_agent_models(loaded: LoadedConfig, environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check the model of each agent: its name is known, and its key is set."""
    from everturn.config.models import default_model, make_model
    from everturn.models.offline import OFFLINE
    from everturn.models.registry import get_model

    checks: list[DoctorCheck] = []
    default = default_model(environment)
    tables = loaded.config.agents
    models_by_agent = {name: table.model or default for name, table in tables.items()} or {"assistant": default}
    for agent, model in models_by_agent.items():
        has_own = agent in tables and bool(tables[agent].model)
        where = f"{loaded.tree.where(('agents', agent, 'model'))}: " if has_own else ""
        try:
            if model in loaded.config.models:
                make_model(model, loaded.config.models[model], environment, loaded.config.models)
            else:
                get_model(model, environ=environment)
        except ConfigError as error:
            checks.append(DoctorCheck(ABOUT, agent, "broken", make_printable(f"{where}{error}"), OTHER))
            continue
        if model == OFFLINE and not has_own:
            checks.append(
                DoctorCheck(ABOUT, agent, "note", "no model is named and no key is set: the offline demo", BEGIN)
            )
        else:
            checks.append(DoctorCheck(ABOUT, agent, "ok", make_printable(model)))
    return checks


def check_local_servers(loaded: LoadedConfig) -> list[DoctorCheck]:
    """Check which model servers answer on this machine, at their default ports."""
    from everturn.config.discovery import LOCAL_SERVERS, discover_models

    # Without an environment: this is about servers only, not about keys.
    setup = asyncio.run(
        cast("Coroutine[Any, Any, SetupView]", discover_models(loaded, {}, LOCAL_SERVERS)("assistant", ""))
    )
    checks: list[DoctorCheck] = []
    for way in setup.options:
        more = f" and {len(way.models) - SHOWN} more" if len(way.models) > SHOWN else ""
        detail = f"{way.address} has {', '.join(way.models[:SHOWN])}{more}"
        checks.append(DoctorCheck(ABOUT, way.name, "ok", make_printable(detail)))
    if checks:
        return checks
    names = ", ".join(f"{place.name} ({place.port})" for place in LOCAL_SERVERS)
    return [DoctorCheck(ABOUT, "on this machine", "absent", f"no server answers: {names}")]


def check_keys(environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check which API keys are set, by name."""
    from everturn.models.vendors import VENDORS

    users: dict[str, list[str]] = {"EVERTURN_API_KEY": ["a server of your own"]}
    for vendor, profile in VENDORS.items():
        if profile.key:
            users.setdefault(profile.key, []).append(vendor)
    return [
        DoctorCheck("Keys", name, "ok" if environment.get(name, "").strip() else "absent", ", ".join(vendors))
        for name, vendors in users.items()
    ]
