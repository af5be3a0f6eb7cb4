"""Safe dismissal of screens: a screen that ends by itself closes itself, and not the screen on top of it."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import Screen, ScreenResultType


class ClosingScreen(Screen[ScreenResultType]):
    """A screen that may be dismissed at any time: by a key, or because what it shows has ended.

    Textual's `dismiss` pops whatever screen is on top. Below another screen, say the command palette, this one waits
    until it is on top again, and closes then.
    """

    _pending_result: tuple[ScreenResultType | None] | None = None

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this screen, now or when it is on top again."""
        if self.is_active:
            return super().dismiss(result)
        self._pending_result = self._pending_result or (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        """The screen is on top again."""
        if self._pending_result is not None:
            (result,), self._pending_result = self._pending_result, None
            self.dismiss(result)
