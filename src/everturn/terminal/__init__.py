"""What a face in a terminal is made of, and the chat that is one.

lines → talk → watching → answer → screen, and Ctrl-C; where a turn asks: asking → desk → gate

screen.py      text → lines of a terminal that can only be read
ctrl_c.py      the first Ctrl-C is told, the second leaves
lines.py       what a person types, or what a pipe brings
paths.py       what a person or a model calls a file → where it leads
files.py       what goes with the next message, and what came with an answer
words.py       what the chat says of itself
answer.py      what a turn shows → an answer on the screen
exact.py       text → lines in which every character can be seen, and none is missing
gate.py        a gate → lines on the screen, all of it
forms.py       the schema of an answer → fields, and a line → the value of one
choices.py     what can be answered to a gate, by which key
editing.py     what a person makes of arguments and results
filling.py     a form → the answer to it, field by field or as JSON
desk.py        where a person is asked about a gate
asking.py      the gates that stand open → one question after the other
watching.py    a turn → an answer with the questions in between
saying.py      what the chat has to say → the screen, or stderr
agreeing.py    a question that is answered with y, or not
changes.py     files that changed → a line
reverting.py   what steps did to files → what they were before
offered.py     the tools there are, and how servers are
reaching.py    folders, sandboxes, servers that a command line names → tools and plugins
loading.py     files and modules that a command line names → tools
leftovers.py   what a process before this one left unfinished
permissions.py  rules and a call → what becomes of it, and why: `everturn permissions`
talk.py        lines → turns, one after the other: `everturn chat`
"""
