"""Permission rules: decide from rules and a tool call whether the call is allowed, asked about or denied.

A call is laid out as cases (`subjects`), each case is matched against the patterns of the rules (`patterns`), and the
strictest decision wins (`policy`). The package is pure, and its matching takes bounded time on untrusted input.

- `policy`: rules, layers and the decision about a call
- `subjects`: the arguments of a call as the cases that rules match
- `patterns`: patterns of text, paths, URLs and commands
- `globs`: glob matching in linear time
- `urls`: URL normalisation and URL patterns
- `shell_expansion`: words of a command that a shell would expand
- `shadowed_rules`: rules that can never decide
- `loosened_rules`: what a change of rules may allow that was asked about or denied before
"""
