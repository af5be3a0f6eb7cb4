"""What a session with a server tells its owner, and what is known of a call on its way."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.core.canonical import JsonObject

UNREACHABLE: Final = -32062  # our own code, beside those that the protocol has: nobody is at the other end

CLOSED: Final = "its connection was closed"


class Sending(Struct):
    """A call on its way: whether its bytes may have reached the server, and what came back."""

    tell: bool = True
    is_sent: bool = False
    result: JsonObject = {}


class Events:
    """What a session tells its owner. Nothing here may wait, but for `asked`."""

    def lost(self, why: str) -> None:
        """It cannot be talked to any more."""

    def changed(self) -> None:
        """It has other tools now."""

    def login(self, why: str) -> None:
        """It wants to know who we are."""

    async def asked(self, method: str, params: JsonObject) -> JsonObject:
        """It asks us something in the middle of a call.

        Raises:
            PermissionError: with what it is told instead of an answer.
        """
        raise PermissionError("nobody is here to answer")
