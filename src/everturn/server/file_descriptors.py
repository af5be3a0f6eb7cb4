"""File descriptor limit: raises it to fit the configured connections, or lowers the number of connections to fit it."""

from __future__ import annotations

import logging
from typing import Final

from msgspec.structs import replace

from everturn.config.server_options import ServerOptions

log = logging.getLogger(__name__)

RESERVED_DESCRIPTORS: Final = 256  # descriptors for everything else: the store, the bus, models, tools


def fit_connections(options: ServerOptions) -> ServerOptions:
    """Raise the soft limit of file descriptors; if it stays too low, lower `connections` to what fits.

    Otherwise a surplus connection would not be refused but left in the kernel's queue, and so would every health check
    behind it.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return options
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.connections + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        new = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
            soft = new
        except (OSError, ValueError) as error:
            log.warning("the limit of open files is %d and cannot be raised: %s", soft, error)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return options
    available = max(soft - RESERVED_DESCRIPTORS, soft // 2)
    # Half of the connections is enough for most; only operators with far fewer have to act.
    log.log(
        logging.WARNING if 2 * available < options.connections else logging.DEBUG,
        "at most %d connections at once, and not %d: `ulimit -n` allows %d descriptors",
        available,
        options.connections,
        soft,
    )
    return replace(options, connections=available)
