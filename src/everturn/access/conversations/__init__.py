"""Access to conversations: what a caller may read of a session and do in it.

- `sessions`: `access.sessions`: sessions, messages and turns, search, export and import
- `session_chat`: the chat through which a caller sends messages to a session
- `session_search`: search, and the filter of lists
- `sharing`: `access.sharing`: who may see a conversation, links, and administrators who open one
- `log`: `access.log`: the event log, and queued messages
- `log_tail`: the last turns of a log
- `traces`: `access.traces`: what turns did and when, and the requests that they sent
- `files`: `access.files`: uploads, blobs, and reverting files
- `upload_handles`: signed names of uploads
- `audio`: `access.audio`: dictation, and messages that are read aloud
- `presence`: `access.presence`: who looks at conversations and approvals now
- `prompts`: `access.prompts`: saved prompts and added instructions
- `turn_options`: what a client may choose for a turn
- `session_parameters`: what the parameters of a session, a message and an earlier answer come to in a turn
- `session_archive`: exports and imports a session, and what is checked first
- `titles`: titles of sessions that have not started
"""
