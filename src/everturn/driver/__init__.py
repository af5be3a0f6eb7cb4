"""Driver: claims a session, carries out its commands, and drives its turns until they end or wait.

The engine calls `Driver.drive` for a woken session. A claim makes the driver the only writer of the session's log.

- `driver`: claims sessions, retries failed ones, and schedules the next wake
- `drive`: one drive of one session: its turns, timers and tools that outlive a turn
- `commands`: turns the commands of the inbox into events
- `wider_answers`: applies one answer to the other gates that it covers
- `revert`: restores files to a recorded tree
"""
