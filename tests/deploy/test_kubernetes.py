"""The manifests of deploy/kubernetes: they render, fit together, and start command lines that the program knows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from everturn.cli import main as everturn
from everturn.cli.args.commands import make_parser
from everturn.config.server_options import ServerOptions

FOLDER = Path(__file__).parent.parent.parent / "deploy" / "kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())


def read(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def resources(folder: Path) -> list[dict[str, Any]]:
    """What a kustomization names, bases included; each file that it names is there."""
    (kustomization,) = read(folder / "kustomization.yaml")
    found = list[dict[str, Any]]()
    for name in kustomization["resources"]:
        path = (folder / name).resolve()
        found += resources(path) if path.is_dir() else read(path)
    for generator in kustomization.get("configMapGenerator", ()):
        assert all((folder / name).is_file() for name in generator["files"])
    names = {resource["metadata"]["name"] for resource in found}
    assert {replica["name"] for replica in kustomization.get("replicas", ())} <= names
    return found


def pods(overlay: str) -> list[dict[str, Any]]:
    specs = [resource.get("spec", {}) for resource in resources(FOLDER / "overlays" / overlay)]
    specs = [spec.get("jobTemplate", {}).get("spec", spec) for spec in specs]
    return [spec["template"] for spec in specs if "template" in spec]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_file_of_an_overlay_is_used_and_no_resource_is_there_twice(overlay: str) -> None:
    found = resources(FOLDER / "overlays" / overlay)
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in found]
    assert len(set(names)) == len(names) >= 8
    used = sum(
        len(read(path)) for folder in (FOLDER / "base", FOLDER / "overlays" / overlay) for path in folder.glob("*.yaml")
    )
    assert used - 2 == len(found)  # two kustomizations


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_selectors_select_pods_that_there_are(overlay: str) -> None:
    labels = [pod["metadata"]["labels"] for pod in pods(overlay)]
    for resource in resources(FOLDER / "overlays" / overlay):
        spec = resource.get("spec", {})
        selector = spec.get("podSelector") or spec.get("selector") or {}
        wanted = selector.get("matchLabels", selector)
        assert not wanted or any(wanted.items() <= each.items() for each in labels), resource["metadata"]["name"]
        if target := spec.get("scaleTargetRef"):
            assert target["name"] in {each["app"] for each in labels}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_have_no_rights_that_they_do_not_need(overlay: str) -> None:
    for pod in pods(overlay):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["image"].startswith("everturn:") or "@sha256:" in container["image"]
            assert "memory" in container["resources"]["limits"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_probes_and_times_fit_the_server() -> None:
    spec = read(FOLDER / "base" / "api.yaml")[0]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > ServerOptions().drain + pause
    (container,) = read(FOLDER / "base" / "worker.yaml")[0]["spec"]["template"]["spec"]["containers"]
    config = (FOLDER / "base" / "everturn.toml").read_text(encoding="utf-8")
    assert f'expose = "0.0.0.0:{container["ports"][0]["containerPort"]}"' in config


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_command_lines_are_ones_that_the_program_knows(overlay: str) -> None:
    for pod in pods(overlay):
        for container in pod["spec"]["containers"]:
            if not container["image"].startswith("everturn:"):
                continue
            if container.get("command") == ["sh", "-c"]:
                lines = [
                    line.replace('"$folder"', "folder").split()
                    for line in re.findall(r"everturn ([^&]+)", container["args"][0])
                ]
            else:
                lines = [container["args"]]
            assert lines
            for line in lines:
                make_parser().parse_args(line)


def test_the_configuration_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert everturn(["config", "check", str(FOLDER / "base" / "everturn.toml")]) == 0
    capsys.readouterr()
    secret = read(FOLDER / "base" / "api.yaml")[0]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][1]
    assert f"${{file:{secret['mountPath']}/" in (FOLDER / "base" / "everturn.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubectl_renders_the_overlay(overlay: str) -> None:
    line = ["kubectl", "kustomize", str(FOLDER / "overlays" / overlay)]
    rendered = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert rendered.returncode == 0, rendered.stderr
    documents = [document for document in yaml.safe_load_all(rendered.stdout) if document]
    assert len(documents) == len(resources(FOLDER / "overlays" / overlay)) + 1  # the ConfigMap
    (config,) = [each for each in documents if each["kind"] == "ConfigMap"]
    named = {volume["configMap"]["name"] for each in documents for volume in _volumes(each) if "configMap" in volume}
    assert named == {config["metadata"]["name"]}


def _volumes(resource: dict[str, Any]) -> list[dict[str, Any]]:
    spec = resource.get("spec", {})
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    return spec.get("template", {}).get("spec", {}).get("volumes", [])
