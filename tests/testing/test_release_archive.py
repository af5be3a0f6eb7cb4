"""Archived releases: complete, checked by hash, never written twice, and really the code that runs."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from everturn import __version__
from everturn.errors import ConfigError
from tools.environment import ROOT, child_environment
from tools.release.archive import (
    PROVENANCE,
    TOOLS,
    archive_release,
    hash_file,
    list_releases,
    pack_tools,
    read_manifest,
    unpack_release,
)
from tools.release.provenance import LOCKS

MODULE = "print('released')\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / f"everturn-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("everturn/__init__.py", MODULE)
    return path


def test_an_archive_has_the_wheel_and_the_tools_with_their_hashes(wheel: Path, tmp_path: Path) -> None:
    folder = archive_release(wheel, "abc", tmp_path / "releases")
    manifest = read_manifest(folder)
    assert (manifest.version, manifest.commit) == (__version__, "abc")
    assert manifest.files == {name: hash_file(folder / name) for name in (wheel.name, TOOLS)}
    unpacked = unpack_release(folder, tmp_path / "unpacked")
    assert (unpacked.paths[0] / "everturn" / "__init__.py").read_text() == MODULE
    assert (unpacked.paths[1] / "tools" / "chaos" / "worker.py").is_file()


def test_the_provenance_names_the_files_the_commit_and_the_locks(wheel: Path, tmp_path: Path) -> None:
    folder = archive_release(wheel, "abc", tmp_path / "releases")
    statement = json.loads((folder / PROVENANCE).read_bytes())
    named = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert named == read_manifest(folder).files
    sources = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert sources[0]["digest"] == {"gitCommit": "abc"}
    assert {source["name"]: source["digest"]["sha256"] for source in sources[1:]} == {
        name: hash_file(ROOT / name) for name in LOCKS
    }


def test_a_released_version_is_never_archived_again(wheel: Path, tmp_path: Path) -> None:
    archive_release(wheel, "abc", tmp_path / "releases")
    with pytest.raises(ConfigError, match="raise the version in pyproject"):
        archive_release(wheel, "abc", tmp_path / "releases")


@pytest.mark.parametrize("name", ["wheel", TOOLS])
def test_a_changed_file_is_not_unpacked(wheel: Path, tmp_path: Path, name: str) -> None:
    folder = archive_release(wheel, "abc", tmp_path / "releases")
    changed = folder / (wheel.name if name == "wheel" else name)
    changed.write_bytes(changed.read_bytes() + b"\0")
    with pytest.raises(ConfigError, match="manifest"):
        unpack_release(folder, tmp_path / "unpacked")


def test_equal_tools_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        pack_tools(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_process_of_a_release_imports_its_own_code_and_tools(wheel: Path, tmp_path: Path) -> None:
    unpacked = unpack_release(archive_release(wheel, "abc", tmp_path / "releases"), tmp_path / "unpacked")
    line = [sys.executable, "-c", "import everturn, tools; print(everturn.__file__); print(tools.__file__)"]
    output = subprocess.check_output(line, env=child_environment(*unpacked.paths), cwd=tmp_path, text=True)
    assert output.split() == [
        "released",
        str(unpacked.paths[0] / "everturn" / "__init__.py"),
        str(unpacked.paths[1] / "tools" / "__init__.py"),
    ]


@pytest.mark.parametrize("folder", list_releases(), ids=lambda folder: folder.name)
def test_every_archived_release_has_its_hashes(folder: Path, tmp_path: Path) -> None:
    assert unpack_release(folder, tmp_path).manifest.version == folder.name
