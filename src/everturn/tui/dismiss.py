"""Dismiss a screen that ends by itself, and not the screen that lies on top of it by then."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import Screen, ScreenResultType


class ClosingScreen(Screen[ScreenResultType]):
    """A screen that may be dismissed at any time: by a key, or because what it shows is over.

    Textual's `dismiss` pops whatever screen is on top. Below another screen, say the command palette, this one waits
    until it is seen again, and closes then.
    """

    _late: tuple[ScreenResultType | None] | None = None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this screen, now or when it is on top again."""
        if self.is_active:
            return super().dismiss(result)
        self._late = self._late or (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        """It is on top again."""
        if self._late is not None:
            (result,), self._late = self._late, None
            self.dismiss(result)
