"""Temporal in the configuration: what is read from it, and what it says when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn import App
from everturn.cluster import Cluster
from everturn.config.build import configured_cluster
from everturn.config.load import load_config
from everturn.engine.temporal import TemporalEngine
from everturn.errors import ConfigError
from everturn.shared_database import SharedDatabase
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.service_gauges import poll_services
from everturn.testing import MemoryStore, ScriptedModel
from tools.servers.process import free_port


def test_the_file_the_environment_and_the_command_line_name_temporal(tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text(
        "[cluster]\ntemporal = 'tls://a:7233'\ntemporal_namespace = 'shop'\ntemporal_api_key = '${env:KEY}'\n"
        "temporal_ca = 'ca.pem'\nheartbeat_timeout = 20\n"
    )
    loaded = load_config(str(file))
    from_file = configured_cluster(loaded, {}, {"KEY": "secret"})
    from_environment = configured_cluster(loaded, {}, {"KEY": "secret", "EVERTURN_TEMPORAL": "tls://b:7233"})
    from_flags = configured_cluster(
        loaded, {"temporal": "tls://c:7233"}, {"KEY": "secret", "EVERTURN_TEMPORAL": "tls://b:1"}
    )

    assert [cluster.temporal for cluster in (from_file, from_environment, from_flags)] == [
        "tls://a:7233",
        "tls://b:7233",
        "tls://c:7233",
    ]
    assert (from_file.temporal_namespace, from_file.temporal_api_key, from_file.temporal_ca) == (
        "shop",
        "secret",
        "ca.pem",
    )
    assert from_file.heartbeat_timeout == 20


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("temporal = 'https://a:7233'", "it looks like temporal://127.0.0.1:7233"),
        ("temporal = 'temporal://a'", "it looks like temporal://127.0.0.1:7233"),
        ("temporal = 'temporal://a:1'\nrestate = 'http://a'", "a cluster has one engine"),
        ("temporal = 'temporal://a:1'\ntemporal_ca = 'ca.pem'", "this is for TLS"),
        ("temporal = 'a:1'\ntemporal_api_key = '${env:KEY}'", "this is for TLS"),
        ("temporal = 'tls://a:1'\ntemporal_key = 'key.pem'", "a certificate and its key go together"),
        ("temporal = 'tls://a:1'\ntemporal_api_key = 'open'", "give a secret by reference"),
        ("heartbeat_timeout = 0.5", "heartbeat_timeout"),
    ],
)
def test_the_file_says_what_to_change(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text(f"[cluster]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(str(file))
    assert problem in str(caught.value)


def test_a_reference_is_an_address_that_only_the_start_knows(tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text("[cluster]\ntemporal = '${env:WHERE}'\ntemporal_ca = 'ca.pem'\n")
    assert configured_cluster(load_config(str(file)), {}, {"WHERE": "tls://a:7233"}).temporal == "tls://a:7233"


async def test_a_cluster_with_two_engines_does_not_start() -> None:
    cluster = Cluster(restate="http://127.0.0.1:8080", temporal="temporal://127.0.0.1:7233")
    with pytest.raises(ConfigError, match="set `restate` or `temporal`"):
        async with cluster.join(App):
            pass


def test_a_cluster_with_temporal_has_its_engine() -> None:
    cluster = Cluster(temporal="temporal://127.0.0.1:7233")
    assert isinstance(cluster._open_engine(SharedDatabase(cluster.database), drives=True), TemporalEngine)


async def test_the_metrics_say_that_temporal_does_not_answer() -> None:
    engine = TemporalEngine(f"temporal://127.0.0.1:{free_port()}", drives=False)
    await poll_services(App(ScriptedModel(), store=MemoryStore(), engine=engine))
    assert METRICS.value("service_up", "temporal") == 0
    await engine.aclose()
