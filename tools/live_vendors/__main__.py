"""Live vendors from the command line: `scripts/live-vendors [--model NAME …] [--cap 1.0]`.

Asks each model whose key is in the environment, and writes a report and cassettes to `live-reports/`. It stops before
the request that could exceed the cap, and does not ask a model without a known price unless --allow-unpriced is given.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from everturn.config.discovery import EXAMPLES
from everturn.errors import EverturnError
from everturn.models.registry import find_key, get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from tools.live_vendors.redaction import secrets_of
from tools.live_vendors.report import LiveReport, ModelReport
from tools.live_vendors.spend import MeteredModel, Spend
from tools.live_vendors.story import Notebook, tell


class Plan(Struct, frozen=True):
    """Which models are asked, where, and for how much."""

    models: Sequence[str]
    cap: float
    folder: Path
    addresses: Mapping[str, str] = {}
    allow_unpriced: bool = False


async def run(plan: Plan, environ: Mapping[str, str]) -> LiveReport:
    """Ask the models one after the other, so that what one costs is known before the next is asked."""
    spend, reports = Spend(plan.cap), list[ModelReport]()
    at = datetime.datetime.now(datetime.UTC)
    secrets = tuple(secrets_of(environ))
    for name in plan.models:
        vendor = name.partition(":")[0]
        address = plan.addresses.get(vendor, "")
        try:
            model: Any = _open(name, address, environ)
            facts = await model.facts()
        except EverturnError as error:
            reports.append(ModelReport(name, address, refused=str(error)))
            continue
        if facts.price is None and not plan.allow_unpriced:
            reports.append(
                ModelReport(name, address, refused="its price is not known; --allow-unpriced asks it anyway")
            )
            continue
        folder = plan.folder / "cassettes" / re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        metered = MeteredModel(model, facts, spend)
        reports.append(ModelReport(name, address, await tell(metered, spend, Notebook(folder, secrets))))
    return LiveReport(at, spend.cap, spend.spent, spend.requests, reports)


def _open(name: str, address: str, environ: Mapping[str, str]) -> Any:
    once = RetryPolicy(attempts=1)  # each request is paid, and an error is news
    if not address:
        return get_model(name, retry=once, environ=environ)
    profile = VENDORS[name.partition(":")[0]]
    return get_model(name, base_url=address, key=find_key(profile.key, environ), retry=once, environ=environ)


def models_of(environ: Mapping[str, str]) -> list[str]:
    """A model for each key in the environment."""
    return [model for variable, model in EXAMPLES.items() if find_key(variable, environ).strip()]


def parse(arguments: Sequence[str] | None, environ: Mapping[str, str]) -> Plan:
    """The plan that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="scripts/live-vendors", description=__doc__)
    parser.add_argument("--model", action="append", default=[], help="vendor:model; default: one for each key")
    parser.add_argument("--cap", type=float, default=1.0, help="dollars, for all models together (default: 1.0)")
    parser.add_argument(
        "--out", type=Path, default=Path("live-reports"), help="folder of the report (default: live-reports)"
    )
    parser.add_argument(
        "--base-url", action="append", default=[], metavar="VENDOR=URL", help="another address of a vendor"
    )
    parser.add_argument("--allow-unpriced", action="store_true", help="also ask models whose price is not known")
    options = parser.parse_args(arguments)
    addresses: dict[str, str] = {}
    for each in options.base_url:
        vendor, equals, url = each.partition("=")
        if not equals or vendor not in VENDORS:
            parser.error(f"--base-url {each}: write VENDOR=URL; the vendors are {', '.join(sorted(VENDORS))}")
        addresses[vendor] = url
    return Plan(options.model or models_of(environ), options.cap, options.out, addresses, options.allow_unpriced)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, write the report, and return 1 if a chapter failed."""
    plan = parse(arguments, os.environ)
    if not plan.models:
        print(f"no key of a vendor is in the environment; set one of {', '.join(EXAMPLES)}", file=sys.stderr)
        return 2
    report = asyncio.run(run(plan, os.environ))
    path = report.write(plan.folder, secrets_of(os.environ))
    print(path.read_text("utf-8"))
    print(f"written to {path}")
    return 1 if report.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
