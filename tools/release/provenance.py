"""Provenance of a release: an in-toto statement that says from which sources and locked dependencies the wheel was built.

It is not signed: a signature needs the identity of a build host. Whoever builds the commit again can compare the digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.environment import ROOT

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
LOCKS = ("requirements/bootstrap.txt", "requirements/dev.txt", "web/package-lock.json")  # of the tools that build


def make_provenance(version: str, commit: str, files: Mapping[str, str], root: Path = ROOT) -> dict[str, Any]:
    """Return the statement about built files, given with their SHA-256."""
    locks = [
        {"name": name, "digest": {"sha256": hashlib.sha256((root / name).read_bytes()).hexdigest()}} for name in LOCKS
    ]
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in files.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": "everturn/scripts-wheel",
                "externalParameters": {"commands": ["scripts/setup", "scripts/web", "scripts/wheel"]},
                "internalParameters": {"version": version},
                "resolvedDependencies": [{"name": "everturn", "digest": {"gitCommit": commit}}, *locks],
            },
            "runDetails": {"builder": {"id": "everturn/local-checkout"}},
        },
    }
