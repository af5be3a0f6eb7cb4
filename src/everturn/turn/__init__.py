"""The stages of a turn: `prepare → request → stream ⇄ tools → finalize`.

The stages do not import each other; only `loop` knows their order. Tool calls are in `everturn.calls`, the shared state
of a running turn in `everturn.running`, and the driver of sessions in `everturn.driver`.

- `loop`: carries out what `core.state.decide` says, until the turn ends or waits
- `prepare`: checks the input, reports late results, and adds the placeholder of the answer
- `request`: builds the model request from the log
- `stream`: reads the model's stream, and assembles parts and deltas
- `usage_estimate`: estimates token usage if the provider reports none
- `steering`: adds messages that a person sends while the turn runs
- `finalize`: finishes open calls, runs end hooks, and writes the terminal event
"""
