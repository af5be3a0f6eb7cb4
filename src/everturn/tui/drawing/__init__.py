"""State → blocks → lines that can only be read. Pure: no widget, and no server.

ink.py       text with names of styles → lines of a width; whatever is drawn passes here, and is made safe
pieces.py    a text that grows → pieces of markdown, of which all but the last are finished
markdown.py  a piece of markdown → lines
paper.py     what something is drawn on: a width, a time, a language
code.py      code, diffs and exact text → lines
cards.py     a tool call → a card
marks.py     what the runtime says between and under the messages → lines
blocks.py    a branch of a session → its blocks; what has not changed is the same block
roll.py      blocks → where each of them stands in one long roll of lines
looks.py     the names of styles → colours of a theme

The first three columns of a line are ours: a mark of the cursor, a sign, a blank. What a model, a tool or a person wrote
never stands there, so nothing that they write can look like a card or a question.
"""
