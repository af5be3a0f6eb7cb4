"""Context of the hook `on_compact`: a summary that is about to be asked for."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.canonical_json import replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import CompactionReason
from everturn.errors import HookMisused
from everturn.running.active_turn import ActiveTurn
from everturn.running.guardrail_contexts import OneCallContext


class CompactHookContext(OneCallContext):
    """A summary that is about to be asked for, as one plugin sees it."""

    hook = "on_compact"

    def __init__(
        self,
        run: ActiveTurn,
        plugin: str,
        why: CompactionReason,
        replaced: Sequence[Message],
        instructions: str,
        focus: str,
    ) -> None:
        super().__init__(run, plugin)
        self.why, self.replaced, self.instructions, self.focus = why, list(replaced), instructions, focus
        self.added: list[str] = []
        self.text: str | None = None
        self.refusal: str | None = None

    def add(self, text: str) -> None:
        """Give the model that writes the summary something to include."""
        self._check_open("add")
        self.added.append(_text(text, "add"))

    def use(self, text: str) -> None:
        """Take this text as the summary: no model is asked."""
        self._check_open("use")
        self.text = _text(text, "use")

    def refuse(self, reason: str) -> None:
        """Refuse the compaction: the conversation stays as it is."""
        self._check_open("refuse")
        self.refusal = _text(reason, "refuse")


def _text(text: object, method: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise HookMisused(f'ctx.{method} needs a string: ctx.{method}("…")')
    return replace_surrogates(text)
