"""Rendering of a conversation: session state as blocks, and blocks as styled lines. Pure: no widget, and no server.

The first three columns of a line are ours: the cursor mark, a sign, a blank. Text from a model, a tool or a person
never starts there, so it cannot imitate a card or a gate.

- `text`: styled text in lines of a width; all drawn text passes here, and is escaped here
- `canvas`: the width, time and texts that a block is drawn with
- `markdown_split`: a growing text in pieces of Markdown, all finished but the last
- `markdown`: a piece of Markdown as lines
- `code`: code, diffs and exact text as lines
- `cards`: a tool call as a card
- `annotations`: user messages, reasoning, steps, notices, file changes and turn endings as lines
- `blocks`: a branch of a session as blocks; unchanged blocks are reused
- `virtual_list`: the position of each block in one long list of lines
- `styles`: style names as colours of the theme
"""
