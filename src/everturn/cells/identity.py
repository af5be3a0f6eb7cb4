"""The tenant of a request: by the host name, by an inbound hook's name, or by asking the cells who shows a credential.

An API key or a login belongs to one tenant for ever, so the answer of a cell is cached by the hash of the credential. The
cache decides where a request goes and nothing else: the cell itself authenticates every request.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

CACHED: Final = 100_000  # credentials
_LOGIN: Final = re.compile(r"(?:^|;\s*)(?:__Host-everturn|everturn-\d+)=(evl_[A-Za-z0-9_-]{32,128})(?=;|$)")
_HOOK: Final = re.compile(r"/api/hooks/([^/?]+)")


class TenantIdentity:
    """Finds the tenant of a request. `ask` asks a cell for the tenant of a credential; None: it does not know it."""

    def __init__(
        self,
        ask: Callable[[str, Mapping[str, str]], Awaitable[str | None]],
        domain: str = "",
        hooks: Mapping[str, str] | None = None,
    ) -> None:
        self._ask, self._hooks = ask, dict(hooks or {})
        self._suffix = f".{domain.lower().strip('.')}" if domain else ""
        self._known: OrderedDict[str, str] = OrderedDict()

    def tenant_of_host(self, host: str) -> str:
        """The tenant that a host name stands for: `acme.example.com` with the domain `example.com`; "": none."""
        name = host.partition(":")[0].lower()
        label = name.removesuffix(self._suffix) if self._suffix and name.endswith(self._suffix) else ""
        return "" if "." in label else label

    def tenant_of_hook(self, path: str) -> str | None:
        """The tenant of an inbound hook; "": the path is not that of one; None: nobody says whose it is."""
        match = _HOOK.match(path)
        return "" if match is None else self._hooks.get(match[1])

    def cached(self, credential: Mapping[str, str]) -> str:
        """The tenant of a credential that was asked for before; ""."""
        name = _hash(credential)
        if name in self._known:
            self._known.move_to_end(name)
        return self._known.get(name, "")

    async def tenant_of_credential(self, credential: Mapping[str, str], cells: Sequence[str]) -> str:
        """Ask the cells, one after the other, for the tenant of a credential; "": none of them knows it."""
        for cell in cells:
            if (tenant := await self._ask(cell, credential)) is not None:
                self._known[_hash(credential)] = tenant
                if len(self._known) > CACHED:
                    self._known.popitem(last=False)
                return tenant
        return ""

    def forget(self, credential: Mapping[str, str]) -> None:
        """Ask again next time: a cell has refused the credential."""
        self._known.pop(_hash(credential), None)


def credential_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate a request: a bearer token, or the cookie of a login. Empty: there are none."""
    if authorization := headers.get("Authorization", ""):
        return {"Authorization": authorization}
    match = _LOGIN.search(headers.get("Cookie", ""))
    return {} if match is None else {"Cookie": match[0].strip("; ")}


def _hash(credential: Mapping[str, str]) -> str:
    text = credential.get("Authorization") or credential.get("Cookie", "").partition("=")[2]
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
