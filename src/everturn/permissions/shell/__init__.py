"""Shell command analysis: parses a command line with tree-sitter and finds every program it may run.

Nothing is run, and nothing is looked up. A command line becomes a list of subjects (commands, redirects, assignments)
that permission rules match; one that cannot be read with certainty is refused (`UnreadableCommand`).

- `bounded_reader`: entry point; reads command lines in bounded time
- `worker`: the worker process for longer command lines
- `command_line`: reads a command line into subjects
- `parser`: syntax tree of a command line, strictly checked
- `statements`: lists, loops, conditions and functions
- `simple_commands`: simple commands, assignments and redirects
- `word_nodes`: words and redirects of the syntax tree
- `word_expansion`: quoting, expansion and braces of a word
- `wrappers`: commands that run other commands (`sudo`, `xargs`, `find`)
- `inline_scripts`: commands that run scripts (`bash -c`, `eval`, `ssh`)
- `nested_programs`: data types for what a command runs besides itself
- `capabilities`: options that let a known program run commands or write files
- `programs`: the table of known programs and their options
- `arguments`: options, values and operands of a known program
- `awk_sed`: what awk and sed scripts can do
"""
