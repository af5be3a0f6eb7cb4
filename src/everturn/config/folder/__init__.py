"""Folder assistant: the agent of `everturn` in a folder, with tools, instructions and settings of that folder.

- `project`: which folder it is: the root of the git repository around the current folder, or that folder itself
- `trust`: the folders and instruction files that a person trusts, by their hashes
- `instruction_files`: AGENTS.md and CLAUDE.md: which ones count, and what the model is told of them
- `prompt`: the instructions of the agent, and what it is told of its environment
- `git_access`: what the model is told of the repository, and which commands may change it
- `extension_tools`: skills, sub-agents, MCP servers and slash commands from the files of the folder
- `agent`: the agent: its tools, snapshots, rules and instructions
- `agents`: the folders that a server has open, each with its agent
"""
