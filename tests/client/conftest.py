from collections.abc import Iterator

import pytest

from tests.helpers.server_process import Node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    server_node = Node(tmp_path_factory.mktemp("node") / "home").start()
    yield server_node
    server_node.kill9()
