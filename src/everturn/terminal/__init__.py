"""What a face in a terminal is made of, and the chat that is one.

lines → talk → answer → screen, and Ctrl-C

screen.py     text → lines of a terminal that can only be read
ctrl_c.py     the first Ctrl-C is told, the second leaves
lines.py      what a person types, or what a pipe brings
paths.py      what a person or a model calls a file → where it leads
files.py      what goes with the next message, and what came with an answer
words.py      what the chat says of itself
answer.py     what a turn shows → an answer on the screen
talk.py       lines → turns, one after the other: `everturn chat`
"""
