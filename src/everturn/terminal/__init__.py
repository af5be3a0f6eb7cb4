"""What a face in a terminal is made of, and the chat that is one.

lines → talk → answer → screen, and Ctrl-C

screen.py     text → lines of a terminal that can only be read
ctrl_c.py     the first Ctrl-C is told, the second leaves
lines.py      what a person types, or what a pipe brings
answer.py     what a turn shows → an answer on the screen
talk.py       lines → turns, one after the other: `everturn chat`
"""
