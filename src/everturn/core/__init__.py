"""WHAT a turn is. Pure: no clock, no I/O, no randomness, no await; msgspec is the only third party.

Read in this order: `parts` and `messages` (what a conversation is made of), `events` (everything that can
happen), `calls` and `state` (the two machines and what happens next), `commands` (what people may ask, and the checks
at the door), `requests` and `history` (what a model is shown), `deltas` (the live edge), then `ports` and `hooks`
(where the world and the plugins come in).
"""
