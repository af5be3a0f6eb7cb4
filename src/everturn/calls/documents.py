"""Documents of a conversation: the attached files whose text was read, as a running tool reads them."""

from __future__ import annotations

from everturn.core.context.documents import documents_of
from everturn.core.parts import FilePart
from everturn.running.active_turn import ActiveTurn


async def list_documents(run: ActiveTurn) -> list[FilePart]:
    """The documents of the branch, oldest first, also those that a compaction has left out of requests."""
    return documents_of([*await run.read_whole_history(), *run.state.messages.values()])
