"""The configuration of the rig."""

from __future__ import annotations

from typing import Final

USERS: Final = ("viewer", "member", "approver", "owner")  # each has the role of its name
CONFIG: Final = """\
[server]
host = "127.0.0.1"
port = {port}
token_file = "{home}/token"
drain = 3.0

[store]
url = "{home}/talks.db"

[models.{first}]
model = "compatible:{first}"
base_url = "{model}"
window = 32000
price = {{ input = 2.0, output = 8.0, cached = 0.5 }}

[models.{second}]
model = "compatible:{second}"
base_url = "{model}"

[agents.assistant]
description = "Does a bit of everything."
model = "{first}"
models = ["{second}"]
system = "You are the assistant of a test."
manual = ["measure"]
max_steps = 12

[agents.brief]
description = "Stops after two steps."
model = "{second}"
max_steps = 2

[agents.timely]
description = "Its questions expire after ten seconds."
model = "{first}"
gate_timeout = 10.0

[tools]
python = ["{deeds}"]
files = "{home}/files"
todos = true

[mcp.garden]
command = "{python}"
args = ["-S", "{hostile}", "{home}/garden.jsonl", "plain"]

[mcp.missing]
command = "/nowhere/server"

[[permissions]]
tool = "read_file"
action = "deny"
match = {{ path = "private/**" }}

[tenants.local]
name = "The house"
{users}
"""
