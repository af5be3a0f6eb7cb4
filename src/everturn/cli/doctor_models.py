"""What is configured and what runs here → which models can be asked. Of a key only its name is told."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from everturn.cli.doctor_checks import Check, plain
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.api import SetupView
    from everturn.config.loading import Loaded

ABOUT: Final = "Models"
SHOWN: Final = 3  # models of a server that are named
BEGIN: Final = "set a key, such as ANTHROPIC_API_KEY; or start Ollama; or name a model: --model"
OTHER: Final = "do that, or name another model: --model, or EVERTURN_MODEL, or model under [agents.NAME]"


def meant(loaded: Loaded, environment: Mapping[str, str]) -> list[Check]:
    """The model of each agent, and whether it could be asked: its key is there, and its name is known."""
    from everturn.config.models import make_model, usual_model
    from everturn.models.named import named
    from everturn.models.offline import OFFLINE

    found: list[Check] = []
    usual = usual_model(environment)
    tables = loaded.config.agents
    asked = {name: table.model or usual for name, table in tables.items()} or {"assistant": usual}
    for agent, model in asked.items():
        has_own = agent in tables and bool(tables[agent].model)
        where = f"{loaded.tree.where(('agents', agent, 'model'))}: " if has_own else ""
        try:
            if model in loaded.config.models:
                make_model(model, loaded.config.models[model], environment)
            else:
                named(model, environ=environment)
        except ConfigError as error:
            found.append(Check(ABOUT, agent, "broken", plain(f"{where}{error}"), OTHER))
            continue
        if model == OFFLINE and not has_own:
            found.append(Check(ABOUT, agent, "note", "no model is named and no key is set: the offline demo", BEGIN))
        else:
            found.append(Check(ABOUT, agent, "ok", plain(model)))
    return found


def local(loaded: Loaded) -> list[Check]:
    """The servers for models that answer on this machine, at their usual ports."""
    from everturn.config.surveying import PLACES, survey

    # Without an environment: only servers are asked for here, and no key.
    found = asyncio.run(cast("Coroutine[Any, Any, SetupView]", survey(loaded, {}, PLACES)("assistant", "")))
    checks: list[Check] = []
    for way in found.ways:
        more = f" and {len(way.models) - SHOWN} more" if len(way.models) > SHOWN else ""
        said = f"{way.address} has {', '.join(way.models[:SHOWN])}{more}"
        checks.append(Check(ABOUT, way.name, "ok", plain(said)))
    if checks:
        return checks
    names = ", ".join(f"{place.name} ({place.port})" for place in PLACES)
    return [Check(ABOUT, "on this machine", "absent", f"nobody answers of {names}")]


def keys(environment: Mapping[str, str]) -> list[Check]:
    """Which keys are set, by name."""
    from everturn.models.vendors import VENDORS

    users: dict[str, list[str]] = {"EVERTURN_API_KEY": ["a server of your own"]}
    for vendor, profile in VENDORS.items():
        if profile.key:
            users.setdefault(profile.key, []).append(vendor)
    return [
        Check("Keys", name, "ok" if environment.get(name, "").strip() else "absent", ", ".join(vendors))
        for name, vendors in users.items()
    ]
