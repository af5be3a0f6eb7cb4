"""Tools: what a model may call. `function` makes one out of a Python function."""
