"""What is in deploy/ fits together: files that are named exist, options are the program's own, nothing stands open."""

from __future__ import annotations

import configparser
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from everturn.cli import main as everturn
from everturn.config.server_options import ServerOptions

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TOML = sorted(path for path in DEPLOY.glob("*.toml") if path.name != "restate.toml")
KUBERNETES = (ROOT / "docs" / "deploy" / "kubernetes.md").read_text(encoding="utf-8")
NOTES: list[dict[str, Any]] = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", KUBERNETES, re.DOTALL)]
FRAGMENTS = NOTES
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("everturn:")]
IMAGE = re.compile(
    r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)?[a-z0-9]+(?:[._-][a-z0-9]+)*:[A-Za-z0-9][A-Za-z0-9._-]*(?:@sha256:[0-9a-f]{64})?"
)


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Containerfile and what is behind it, in one line."""
    lines = [line for line in CONTAINERFILE.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def images() -> list[str]:
    base_images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    return [*base_images, *(service["image"] for service in SERVICES.values()), *found(FRAGMENTS, "image")]


def found(tree: object, name: str) -> list[Any]:
    if isinstance(tree, dict):
        return [v if k == name else each for k, v in tree.items() for each in ([v] if k == name else found(v, name))]
    return [each for item in tree for each in found(item, name)] if isinstance(tree, list) else []


def test_images_are_named_with_a_tag_and_without_a_registry() -> None:
    assert len(images()) >= 8
    for image in images():
        assert IMAGE.fullmatch(image), image
        assert ":latest" not in image


def test_images_of_others_are_held_to_a_digest() -> None:
    foreign = [image for image in images() if not image.startswith("everturn:")]
    assert len(foreign) >= 6
    for image in foreign:
        assert "@sha256:" in image, image


def test_the_image_has_a_python_that_ci_runs() -> None:
    runs = (ROOT / "scripts" / "pythons").read_text(encoding="utf-8")
    assert "scripts/pythons" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    taken = {match for image in images() for match in re.findall(r"^python:(\d+\.\d+)", image)}
    assert taken
    assert taken <= set(re.findall(r'^versions="([^"]+)"', runs, re.MULTILINE)[0].split())


def test_whatever_the_containerfile_copies_is_there_and_not_ignored() -> None:
    allowed = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").split()
    sources: list[str] = []
    for word, rest in instructions():
        if word == "COPY" and "--from=" not in rest:
            sources += [name for name in rest.split()[:-1] if not name.startswith("--")]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        within = [source, *(parent.as_posix() for parent in PurePosixPath(source).parents)]
        assert any(f"!{each}" in allowed for each in within), source
    assert allowed[0] == "*"


def test_the_image_runs_as_nobody_in_particular_and_needs_no_shell() -> None:
    directives = dict(instructions())  # the last of each counts
    assert directives["USER"] == "10001:10001"
    assert directives["ENTRYPOINT"].startswith("[")
    assert directives["CMD"].startswith("[")
    assert "curl" not in CONTAINERFILE
    stages = [rest for word, rest in instructions() if word == "FROM"]
    assert [rest.partition(" AS ")[2] for rest in stages] == ["page", "build", ""], "what builds it is not in it"
    assert stages[-1].startswith("python:")
    assert "ADD" not in {word for word, _ in instructions()}


def test_the_image_installs_what_the_lock_holds_by_hash_and_nothing_beside_it() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lock = (ROOT / "requirements" / "server.txt").read_text(encoding="utf-8")
    pinned = {line.partition("==")[0] for line in lock.splitlines() if re.match(r"[a-z0-9]", line)}
    for extra in ("server", "cluster", "otel"):
        assert {re.split(r"[\[<>=;]", needed)[0] for needed in known[extra]} <= pinned
    assert "--require-hashes --requirement requirements/server.txt" in CONTAINERFILE
    assert "pip install --no-deps ." in CONTAINERFILE


def test_only_api_nodes_are_published_and_only_on_the_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["api1", "api2", "api3"]
    ports = [port for each in published.values() for port in each]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:8000", port) for port in ports)
    assert len(set(ports)) == 3
    assert COMPOSE["networks"]["back"]["internal"] is True
    for name in ("postgres", "nats", "restate"):
        assert SERVICES[name]["networks"] == ["back"]


def test_our_containers_may_do_little() -> None:
    assert OURS == ["api1", "api2", "api3", "worker"]
    for name in OURS:
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service.get("privileged")
        assert service["depends_on"]["postgres"] == {"condition": "service_healthy"}


def test_what_compose_names_is_declared_and_its_files_are_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith("./") else source in COMPOSE["volumes"], volume
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        assert set(service.get("depends_on", {})) <= set(SERVICES)
    cluster = tomllib.loads((DEPLOY / "cluster.toml").read_text(encoding="utf-8"))["cluster"]
    hosts = {re.sub(r"^\w+://(?:[^@]*@)?([a-z]+).*", r"\1", address) for address in cluster.values()}
    assert hosts == {"postgres", "restate", "nats"}
    assert "http://worker:9080" in SERVICES["worker"]["command"]
    assert "listen" not in cluster, "an API node that listens drives, too"
    assert "/run/secrets/database_password" in cluster["database"]


def test_there_is_time_to_leave() -> None:
    seconds = ServerOptions().drain
    for name in OURS:
        assert int(SERVICES[name]["stop_grace_period"].rstrip("s")) > seconds
    [deployment] = [each for each in FRAGMENTS if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    pause = int(spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > seconds + pause


def test_probes_ask_what_they_should() -> None:
    [container] = found(FRAGMENTS, "containers")[0]
    assert container["livenessProbe"]["httpGet"]["path"] == container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def commands() -> list[list[str]]:
    """Every command line of ours that is started somewhere in deploy/."""
    lines = [SERVICES[name]["command"] for name in OURS]
    lines += [json.loads(dict(instructions())["CMD"])]
    lines += [found(FRAGMENTS, "args")[0]]
    lines += [
        re.findall(r"^ExecStart=\S+/everturn (.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)[0].split()
        for unit in UNITS
    ]
    return lines


@pytest.mark.parametrize("line", commands(), ids=" ".join)
def test_every_command_line_is_one_that_the_program_knows(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert everturn([*line, "--help"]) == 0
    offered = capsys.readouterr().out
    for option in line[1:]:
        assert not option.startswith("--") or f"{option} " in offered or f"{option}\n" in offered, option


@pytest.mark.parametrize("path", TOML, ids=lambda path: path.name)
def test_every_configuration_is_in_order(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "password"
    secret.write_text("canary", encoding="utf-8")
    text = path.read_text(encoding="utf-8").replace("/run/secrets/database_password", str(secret))
    (tmp_path / path.name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert everturn(["config", "check", str(tmp_path / path.name)]) in (0, None), capsys.readouterr()
    assert "canary" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_in_order_and_hardened(unit: Path, tmp_path: Path) -> None:
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    read.read_string(unit.read_text(encoding="utf-8"))
    service = read["Service"]
    for name in ("NoNewPrivileges", "DynamicUser", "PrivateTmp", "ProtectHome", "PrivateDevices"):
        assert service[name] == "yes", name
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["StateDirectory"] == unit.stem
    assert int(service["TimeoutStopSec"]) > 25
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze on this machine")
    copy = tmp_path / unit.name
    copy.write_text(
        unit.read_text(encoding="utf-8").replace("/opt/everturn/bin/everturn", sys.executable), encoding="utf-8"
    )
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)], capture_output=True, text=True
    )
    assert unit.name not in checked.stderr, checked.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(copy)], capture_output=True, text=True
    )
    assert rated.returncode == 0, rated.stdout[-300:]


def test_notes_for_kubernetes_hold_what_a_rollout_needs() -> None:
    kinds = [fragment["kind"] for fragment in FRAGMENTS]
    assert kinds == ["Deployment", "NetworkPolicy", "PodDisruptionBudget"]
    assert all(fragment["apiVersion"] and fragment["metadata"]["name"] for fragment in FRAGMENTS)


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_health_check_says_what_the_server_says_and_that_there_is_none() -> None:
    def check(port: int, *path: str) -> int:
        command = [sys.executable, "-I", str(DEPLOY / "health.py"), *path]
        return subprocess.run(command, env={"EVERTURN_SERVER__PORT": str(port)}, timeout=20, check=False).returncode

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        port = server.server_address[1]
        try:
            assert check(port) == 0
            assert check(port, "/readyz") == 1
        finally:
            server.shutdown()
            thread.join()
    assert check(port) == 1


def test_what_the_page_imports_from_the_package_is_copied_to_where_it_is_built() -> None:
    web = [path for path in (ROOT / "web" / "src").rglob("*.ts*") if path.suffix in (".ts", ".tsx")]
    imported = {
        name
        for path in web
        for name in re.findall(r"""from ["'](?:\.\./)+(src/everturn/[^"']+)["']""", path.read_text(encoding="utf-8"))
    }
    assert imported
    page = CONTAINERFILE.partition("npm run build")[0]
    assert all(name in page for name in imported), imported
