"""Extensions of a folder: skills, sub-agents, slash commands and MCP servers that other assistants define as files.

The layouts are those of `.agents`, `.claude` and `.opencode`. Everything here only reads, and limits what it reads; what
of a project counts is decided by `config.folder.trust`, by hash. Nothing in a file widens permissions.

- `frontmatter`: the YAML head of a Markdown file: a small subset, without anchors, aliases and tags
- `file_scan`: finds and reads files below a folder, without following links, within limits
- `extension`: what was found: an extension with its hash, or a problem
- `skills`: SKILL.md folders, with the files beside them
- `subagents`: agents as Markdown files, and the tools that each may have
- `slash_commands`: commands as Markdown files, and how their arguments are filled in
- `mcp_files`: MCP servers from the configuration files of other programs
- `discovery`: all extensions of a folder and of the user, and which of two with one name counts
- `skill_library`: the skills that the model can load in a turn, checked against their hashes
"""
