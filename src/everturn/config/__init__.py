"""Files and the environment → what a server is made of; and a word on whatever is wrong in them, with its line.

layers     which files and variables count → one tree of values, each with its place (`positions`)
schema     what may stand there; `options` is the part that the server itself is given
reading    the tree → a `Config`, or everything that is wrong in it (`trouble`); `checking` says what types cannot
secrets    values that stand there by reference
loading    all of that in one call; and what is shown of it
building   a `Config` → a runtime and the house around it, with `models` and `tools`; `working` is that for a worker
reloading  a file that changes while a server runs
"""
