"""Bubblewrap sandbox: runs shell commands in their own namespaces behind a seccomp filter.

A command sees the programs of the system, an empty /tmp and, if configured, a folder at /work; it has no network, no
environment, no privileges and, where the server is root, a uid that nothing else uses.
"""

from __future__ import annotations

import asyncio

from everturn.core.sandbox import SandboxReport
from everturn.sandbox import bubblewrap_probe
from everturn.sandbox.bubblewrap_runner import BubblewrapRunner


class Bubblewrap(BubblewrapRunner):
    """Runs commands in bubblewrap, a limited number at once."""

    name = "bubblewrap"

    async def probe(self) -> SandboxReport:
        """Probe the guarantees."""
        return await asyncio.to_thread(bubblewrap_probe.check)
