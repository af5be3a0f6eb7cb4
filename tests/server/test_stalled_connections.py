"""A connection that was closed, and whose peer reads nothing, is cut; one that is still being read is not."""

from __future__ import annotations

from typing import Any

from everturn.server.connections import abort_stalled


class Wire:
    """Stands for a transport, and for the connection that has it."""

    def __init__(self, left: list[int], is_closed: bool = True) -> None:
        self.transport: Any = self
        self.sizes, self.is_closed, self.is_cut = left, is_closed, False

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return self.sizes.pop(0)

    def abort(self) -> None:
        self.is_cut = True


def test_only_those_are_cut_whose_peers_have_read_nothing_since_the_last_time() -> None:
    quarantined, reading, alive = Wire([9, 9]), Wire([9, 5]), Wire([9, 9], is_closed=False)
    assert abort_stalled({quarantined, reading, alive}) == 0
    assert abort_stalled({quarantined, reading, alive}) == 1
    assert (quarantined.is_cut, reading.is_cut, alive.is_cut) == (True, False, False)
