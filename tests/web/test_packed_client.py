"""The client for JavaScript as npm packs it, in a project that has nothing else: its modules, its types, one turn."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.server_process import Node
from tests.web.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
COMPILER = WEB / "node_modules" / "typescript" / "bin" / "tsc"
PROGRAM = Path(__file__).with_name("packed_client.ts")
OPTIONS = {
    "strict": True,
    "module": "nodenext",
    "target": "es2022",
    "lib": ["es2022", "dom"],
    "types": [],
    "skipLibCheck": False,
}


def run(folder: Path, *words: str | Path) -> str:
    environ = {**os.environ, "npm_config_cache": str(folder / ".npm"), "npm_config_update_notifier": "false"}
    done = subprocess.run(
        words, cwd=folder, env=environ, capture_output=True, encoding="utf-8", check=False, timeout=150
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What would be published: built and packed in a folder of its own."""
    if not COMPILER.is_file() or not shutil.which("npm"):
        missing("web/node_modules is missing; run scripts/web")
    folder = tmp_path_factory.mktemp("packed")
    for name in ("package.json", "README.md"):
        shutil.copy(WEB / "client" / name, folder)
    run(folder, "node", COMPILER, "-p", WEB / "client", "--outDir", folder / "dist")
    (folder / "secret.env").write_text("not for the package", encoding="utf-8")
    [packed] = json.loads(run(folder, "npm", "pack", "--json", "--offline"))
    return folder / packed["filename"]


@pytest.fixture(scope="module")
def project(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project that has installed it, without a network."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text(json.dumps({"name": "a-project", "private": True, "type": "module"}))
    run(folder, "npm", "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", str(tarball))
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node") / "home").start()
    yield node
    node.kill9()


def test_the_package_has_its_modules_and_types_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = sorted(archive.getnames())
        texts = [archive.extractfile(name) for name in names]
        text = b"".join(file.read() for file in texts if file is not None).decode()
    built = [name for name in names if re.fullmatch(r"package/dist/[\w./-]+\.(js|d\.ts)", name)]
    assert sorted({*names} - {*built}) == ["package/README.md", "package/package.json"]
    assert {"package/dist/index.js", "package/dist/index.d.ts"} <= {*built}
    assert not re.search(r"https?://[\w.-]*registry", text)


def test_a_project_that_installed_it_has_its_types_and_runs_a_turn(project: Path, server: Node) -> None:
    lock = json.loads((project / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name in lock["packages"] if name] == ["node_modules/@everturn/client"]
    shutil.copy(PROGRAM, project / "program.ts")
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "files": ["program.ts"]}))
    run(project, "node", COMPILER, "-p", project)
    messages = json.loads(run(project, "node", "program.js", server.address, server.token))
    assert messages[0] == ["user", "Note that lunch is at noon"]
    assert messages[-1][0] == "assistant"
    assert messages[-1][1]


def test_a_program_that_does_not_fit_the_types_is_not_compiled(project: Path) -> None:
    program = PROGRAM.read_text(encoding="utf-8").replace("// @ts-expect-error", "// without:")
    (project / "wrong.ts").write_text(program, encoding="utf-8")
    (project / "wrong.json").write_text(
        json.dumps({"compilerOptions": OPTIONS | {"noEmit": True}, "files": ["wrong.ts"]})
    )
    with pytest.raises(AssertionError, match="TS2322"):
        run(project, "node", COMPILER, "-p", project / "wrong.json")
