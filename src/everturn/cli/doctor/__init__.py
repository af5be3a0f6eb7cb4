"""Checks of `everturn doctor`: each looks at one thing on this machine and returns `DoctorCheck`s; `commands.doctor`
runs them.

A check changes nothing and has a time limit. It never shows the value of a key or a password.

- `checks`: `DoctorCheck`, and how a list of them is printed
- `machine`: Python, SQLite, clock, disk, programs and the terminal
- `extras`: installed extras and the versions of their packages
- `server`: configuration, port, operator token and web UI
- `folder`: the current folder: trust, instruction files and extensions, and files that are skipped
- `store`: the store of the sessions
- `models`: models of the agents, local model servers and API keys
- `services`: PostgreSQL, Restate, Temporal, NATS and other configured addresses
- `service_logins`: whether PostgreSQL and NATS accept our login
"""
