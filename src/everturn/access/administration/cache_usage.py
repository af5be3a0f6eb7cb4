"""Cache usage: sums the requests of a tenant that missed the prompt cache, from the events that say so."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.core.events import AnswerStarted, StepFinished
from everturn.core.store_ports import Store

MAX_SESSIONS: Final = 1_000  # conversations that are searched, those touched last


async def read_cache_usage(store: Store, tenant: str, since: float) -> api.CacheUsageView:
    """Sum the collapses since a time, by cause and model."""
    page = await store.session_page(tenant, limit=MAX_SESSIONS + 1, since=since)
    names = await store.sessions_with_events([info.id for info in page[:MAX_SESSIONS]], "cache")
    sums: dict[tuple[str, str], api.CacheCollapses] = {}
    counted = set[str]()
    for session in sorted(names):
        models: dict[str, str] = {}
        for entry in await store.indexed_events(session, "cache"):
            event = entry.event
            if not isinstance(event, StepFinished) or event.cache is None or event.at < since:
                continue
            counted.add(session)
            if not event.model and event.turn not in models:
                models[event.turn] = await _model_of(store, session, event.turn)
            model, cause = event.model or models[event.turn], event.cache.cause
            before = sums.get((model, cause))
            sums[model, cause] = api.CacheCollapses(
                cause=cause,
                model=model,
                requests=1 + (before.requests if before is not None else 0),
                missed=event.cache.missed + (before.missed if before is not None else 0),
            )
    collapses = sorted(sums.values(), key=lambda row: (-row.missed, row.model, row.cause))
    return api.CacheUsageView(
        since=since, sessions=len(counted), is_partial=len(page) > MAX_SESSIONS, collapses=collapses
    )


async def _model_of(store: Store, session: str, turn: str) -> str:
    """The model that answered a turn."""
    names = [e.event.message.by for e in await store.events(session, turn=turn) if isinstance(e.event, AnswerStarted)]
    return names[-1] if names else ""
