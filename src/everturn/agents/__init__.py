"""Agents: the definition of an agent, and what an app makes of it.

- `definition`: `AgentDefinition`; model, instructions, tools, dependencies, output type, rules and limits
- `description`: an agent as data, under the keys of everturn.toml
- `output_type`: JSON Schema, validation and partial parsing of a typed output
- `dependencies`: factories of dependencies
- `handoff`: the tool that hands a conversation to another agent
- `bound_agent`: an agent bound to an app: its tool registry, its hooks and its model
- `agent_registry`: the agents of an app by name
- `session_agent`: the options of a turn that the agent of the session takes
- `denied_tools`: finds agents whose rules deny all their tools
"""
