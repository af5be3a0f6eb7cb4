"""The whole screen: a face in a terminal that is a client like any other, on Textual.

It draws events and sends commands over HTTP, and decides nothing: the server may be in this process or anywhere.

state.py       the events of a session → what there is of it: messages, turns, what streams. Pure.
following.py   a session on a server → its state, kept up to date, and a word when something has changed
base.py        what a screen may ask of the app around it
app.py         the app: the keys that hold everywhere, and the screens that they open
hosting.py     the rest of it: which session is shown, what waits anywhere, what screens may ask
talking.py     the screen of a conversation; commands.py is what is done with what was written there
words/         what is said, in English and in Chinese
drawing/       state → blocks → lines that can only be read
transcript.py  blocks as one long roll of lines; only what streams is drawn again
composer.py    where a person writes
scrollback.py  an answer while it comes → markdown, for the chat that goes line by line
status.py      the lines around a conversation; side.py, sessions.py, branches.py, … are lists beside it
gates/         questions: what would happen, exactly, and the keys to answer
"""
