"""Full-screen terminal UI, on Textual: a client of a server over HTTP.

It draws events and sends commands, and decides nothing; the server may be in this process or anywhere.
`session_follower` folds the events of a session into `state`, `render` turns the state into blocks and lines, and
`transcript` shows them.

- `state`: the events of a session, folded: messages, turns, streaming parts
- `session_follower`: keeps the state of one session up to date
- `host`: what a screen may use of the app
- `chat_host`: what the conversation, and the screens that only this app shows, use of it
- `app`: the app: global keys, and the screens that they open
- `app_base`: the app without its keys: session, inbox, lifecycle
- `chat`: the conversation screen
- `commands`: slash commands and actions of the conversation
- `command_host`: what they use of the app
- `file_commands`: attach, save, undo, export
- `completion`: what the input can complete
- `composer`: the text input, with completion and dropped files
- `transcript`: the conversation as one scrolling widget
- `render`: state as blocks and styled lines
- `status`: the status lines of the conversation
- `session_commands`: `/rename`, `/pin`, `/archive` and `/label`
- `sidebar`: recent sessions beside the conversation
- `key_bar`: clickable key hints
- `key_buffer`: keys typed before the input is ready
- `gates`: approval dialogs
- `inbox`: open gates of all sessions
- `sessions`: list, search, export and erase sessions
- `branches`: message versions, as a tree
- `steps`: the steps of an answer, to continue after one of them
- `compare`: two versions side by side
- `picker`: choose a model or an agent
- `memory`: the memory files of the user: read, edit, delete
- `history_search`: a search of the messages that were sent earlier
- `permissions`: rules, tools, grants, and an explanation of a call
- `mcp_servers`: MCP servers: status, trust, login
- `revert`: file changes, and their revert
- `context`: what fills the context window, and the undo of a compaction
- `usage`: tokens and costs per day
- `settings`: theme and language
- `help`: all keys and commands
- `confirm`: yes-or-no dialog
- `dismiss`: base of screens that may close below another screen
- `scrollback`: streaming Markdown for the line-mode chat
- `themes`: themes and CSS
- `texts`: texts in English and Chinese
"""
