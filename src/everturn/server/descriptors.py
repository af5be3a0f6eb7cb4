"""How many connections there can be: each takes a descriptor, and a process has no more of them than it was given."""

from __future__ import annotations

import logging
from typing import Final

from msgspec.structs import replace

from everturn.config.options import ServerOptions

log = logging.getLogger(__name__)

OTHERS: Final = 256  # descriptors for everything else: the store, the bus, models, tools


def with_room(options: ServerOptions) -> ServerOptions:
    """Ask for as many descriptors as are wanted, and take no more connections than there are.

    One too many would not be refused but left in the kernel's queue, and so would every health check behind it.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return options
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.connections + OTHERS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        new = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
            soft = new
        except (OSError, ValueError) as error:
            log.warning("there are %d descriptors and no more can be had: %s", soft, error)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return options
    there = max(soft - OTHERS, soft // 2)
    # Half of it is enough for most; only who has far less than was asked for is to see to it.
    log.log(
        logging.WARNING if 2 * there < options.connections else logging.DEBUG,
        "at most %d connections at once, and not %d: `ulimit -n` allows %d descriptors",
        there,
        options.connections,
        soft,
    )
    return replace(options, connections=there)
