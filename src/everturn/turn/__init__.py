"""HOW a turn goes:

    prepare → request → stream ⇄ tools → finalize

Read `loop` first: it is the only module that knows this order. Each stage is a stranger to the others and talks to
ports only. Beside the stages: `ledger` (the one place that appends to a session's log), `run` (what a process holds of a
turn while it drives it), `contexts` and `hookup` (how plugins are called), `driver` (commands in, turns on), `follow` (how
a reader sees it all), `supervisor` (what outlives its turn).
"""
