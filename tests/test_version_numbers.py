"""One version: of the package, of its metadata, and of the packages for JavaScript."""

import json
import tomllib
from pathlib import Path

from everturn import __version__

SEMVER = __version__.replace(".dev", "-dev.")  # npm writes the versions between two releases like this
ROOT = Path(__file__).parent.parent


def test_every_file_that_names_the_version_names_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = [
        json.loads((ROOT / "web" / name).read_text(encoding="utf-8"))
        for name in ("package.json", "client/package.json")
    ]
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    named = [*(package["version"] for package in packages), lock["version"]]
    named += [lock["packages"][name]["version"] for name in ("", "client")]
    assert project["version"] == __version__
    assert set(named) == {SEMVER}
