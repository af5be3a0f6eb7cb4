"""Schedules: messages that start turns at planned times, once each, whichever process is alive then.

- `planned_times`: cron expressions in a time zone, with DST
- `scheduler`: starts the runs that are due; the theory is in `core.schedules`
- `schedules`: `app.schedules`: create, list, pause, resume, run now, delete
"""
