"""App of a replay: drives the turns of agents that it does not have, because the recording has what they contributed."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.app import App
from everturn.core.options import TurnOptions
from everturn.running.drive_setup import DriveSetup


class ReplayApp(App):
    """An app for replays. The code of an agent (tools, functions, output type) is not needed to replay its turns."""

    def drive_setup(self, options: TurnOptions) -> DriveSetup | None:
        """The setup of a turn, also of one whose agent is unknown here."""
        return super().drive_setup(replace(options, needs_agent=False))
