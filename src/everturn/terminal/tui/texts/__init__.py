"""Texts of the full-screen UI, in English and Chinese: one Struct for each part of the UI, with one value per
language.

A text that is missing in one language is a type error, and not a gap on the screen.

- `app`: keys, commands, input and status lines
- `chat`: transcript
- `gates`: gate dialogs
- `inbox`: inbox
- `permissions`: permissions screen
- `mcp_servers`: MCP servers screen
- `memory`: memory screen
- `prompts`: screen of saved prompts and instructions
- `screens`: sessions, agents, branches, files, usage and settings
"""
