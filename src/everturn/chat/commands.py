"""Commands that start no turn: admits one, and waits until the log says that it was carried out."""

from __future__ import annotations

from everturn.base_app import BaseApp
from everturn.core.commands import AnyCommand, ImportMessages
from everturn.core.store_ports import Receipt
from everturn.errors import UnknownSession


async def carry_out(app: BaseApp, command: AnyCommand) -> Receipt:
    """Admit a command, and wait until a driver has carried it out; a repeat may have been carried out already.

    Raises:
        UnknownSession: the session does not exist.
        SessionBusy: the command needs a session without a turn, and there is one.
        CommandRefused: the command was dropped; nothing was changed.
    """
    try:
        after = await app.store.head(command.session)
    except UnknownSession:
        if not isinstance(command, ImportMessages):  # which creates the session
            raise
        after = 0
    receipt = await app.command(command)
    await app.wait_until_carried_out(command, after if receipt.is_new else 0)
    return receipt
