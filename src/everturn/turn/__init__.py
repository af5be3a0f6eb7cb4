"""The stages of a turn: `prepare → request → stream ⇄ tools → finalize`.

The stages do not import each other; only `loop` knows their order. Tool calls are in `everturn.calls`, the shared state
of a running turn in `everturn.running`, and the driver of sessions in `everturn.driver`.

- `loop`: carries out what `core.decide` says, until the turn ends or waits
- `input_check`: lets plugins refuse what a person said, before anything is done with it
- `prepare`: checks the input, reports late results, and adds the placeholder of the answer
- `request`: builds the model request from the log
- `request_preview`: the next request and what fills its window, without sending it
- `stream`: reads the model's stream, and assembles parts and deltas
- `continuation`: whether the next step continues a text that the output limit cut
- `text_loop`: finds a model that writes the same text again and again
- `output_check`: lets plugins check what the model wrote, before it is shown or committed
- `cache_collapse`: notices that a request missed the provider's prompt cache
- `usage_estimate`: estimates token usage if the provider reports none
- `compaction`: keeps the requests within the context window: clears results, has earlier messages summarised
- `summarizer`: asks a model for a summary
- `window_usage`: what fills the context window
- `step_limit`: asks a person whether a turn at its step limit may continue
- `steering`: adds messages that a person sends while the turn runs
- `title`: asks a small model for the title of a session
- `finalize`: finishes open calls, runs end hooks, and writes the terminal event
"""
