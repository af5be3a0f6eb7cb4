"""The real server, for every test of the whole screen: one for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.scripted_server.server import Rig, a_rig


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """The server, with a scripted model."""
    with a_rig() as server_rig:
        yield server_rig


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person likes is kept elsewhere than that of whoever runs this."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.delenv("NO_COLOR", raising=False)
