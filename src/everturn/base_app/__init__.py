"""App: the composition root.

It connects the ports to their adapters; no other package knows both. `app.App` adds what runs conversations.

- `app`: `BaseApp`: takes commands, drives sessions, and shows events
- `arguments`: validates the arguments of an app
- `models`: the models of an app, by name
- `tool_sources`: opens the tool sources, and offers what they publish
- `readers`: who follows a turn, or waits for a command
- `reconciler`: wakes sessions whose wake was lost
- `turn_status`: what listeners are told when a turn enters a phase
"""

from everturn.base_app.app import BaseApp
from everturn.base_app.turn_status import StatusListener, TurnStatus

__all__ = ["BaseApp", "StatusListener", "TurnStatus"]
