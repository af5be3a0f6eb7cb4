"""What readers compute from the log.

- `session_reader`: the reader of all turns of a session
- `event_index`, `call_index`: where events of a kind are, and the calls that a compaction replaced
- `stats`: statistics of a turn
- `turn_trace`: what a turn did and when, as spans
- `cache_health`: what requests read from the provider's prompt cache, and why it was less than expected
"""
