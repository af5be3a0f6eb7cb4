"""Live vendors: a short story with real models, for whoever has a key, capped at a number of dollars.

`story` has the chapters, `spend` refuses the request that could exceed the cap, `redaction` removes secrets from what is written,
`report` writes it.
"""
