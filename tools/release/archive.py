"""Archive of a release: the built wheel and the campaign tools of its commit, each with its hash, and a provenance.

A later version runs the archived release beside itself (`tools.chaos.two_releases`). The tools are in the archive because
the worker of a campaign uses the Python API of its own release.

    scripts/web && scripts/wheel                    build the wheel of this checkout
    python -m tools.release.archive                 archive it under tests/golden/releases/VERSION
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn import __version__, wire
from everturn.errors import ConfigError
from tools.environment import ROOT
from tools.release.provenance import make_provenance

RELEASES = ROOT / "tests" / "golden" / "releases"
MANIFEST = "manifest.json"
PROVENANCE = "provenance.json"
TOOLS = "tools.zip"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every file in an archive, so that equal content has an equal hash


class ReleaseManifest(Struct, frozen=True):
    """What an archived release consists of."""

    version: str
    commit: str
    log_version: int
    files: dict[str, str]  # file name → SHA-256


class UnpackedRelease(Struct, frozen=True):
    """A release on disk, ready to be imported."""

    manifest: ReleaseManifest
    paths: tuple[Path, ...]  # for PYTHONPATH, in this order


def hash_file(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pack_tools(target: Path) -> None:
    """Write the tools of this checkout into a zip file; equal tools give equal bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted((ROOT / "tools").rglob("*.py")):
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())


def archive_release(wheel: Path, commit: str, releases: Path = RELEASES) -> Path:
    """Archive a built wheel. An archived version is never written again: it stands for what people run."""
    folder = releases / __version__
    if folder.exists():
        raise ConfigError(f"release {__version__} is archived already: raise the version in pyproject.toml")
    folder.mkdir(parents=True)
    shutil.copy2(wheel, folder / wheel.name)
    pack_tools(folder / TOOLS)
    files = {name: hash_file(folder / name) for name in (wheel.name, TOOLS)}
    manifest = ReleaseManifest(__version__, commit, wire.VERSION, files)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (folder / MANIFEST).write_bytes(text + b"\n")
    statement = msgspec.json.encode(make_provenance(__version__, commit, files))
    (folder / PROVENANCE).write_bytes(msgspec.json.format(statement, indent=2) + b"\n")
    return folder


def read_manifest(folder: Path) -> ReleaseManifest:
    """The manifest of an archived release."""
    return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=ReleaseManifest)


def unpack_release(folder: Path, target: Path) -> UnpackedRelease:
    """Unpack an archived release after checking its hashes."""
    manifest = read_manifest(folder)
    paths: list[Path] = []
    for name, expected in manifest.files.items():
        if (found := hash_file(folder / name)) != expected:
            raise ConfigError(
                f"{name} of release {manifest.version} has the hash {found}, its manifest says {expected}"
            )
        place = target / Path(name).stem
        with zipfile.ZipFile(folder / name) as packed:
            packed.extractall(place)
        paths.append(place)
    return UnpackedRelease(manifest, tuple(paths))


def list_releases() -> list[Path]:
    """The folders of the archived releases, by name."""
    return sorted(path.parent for path in RELEASES.glob(f"*/{MANIFEST}"))


def main() -> None:
    """Archive the wheel in `dist`."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    wheels = list((ROOT / "dist").glob(f"everturn-{__version__}-*.whl"))
    if not wheels:
        raise SystemExit(f"dist has no wheel of {__version__}: run scripts/web and scripts/wheel first")
    git = ("git", "-C", str(ROOT))
    if changed := subprocess.check_output((*git, "status", "--porcelain"), text=True):
        raise SystemExit(f"the checkout has changes that no commit has:\n{changed}")
    commit = subprocess.check_output((*git, "rev-parse", "HEAD"), text=True).strip()
    print(archive_release(wheels[0], commit).relative_to(ROOT))


if __name__ == "__main__":
    main()
