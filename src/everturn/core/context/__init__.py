"""What of a conversation a model reads.

- `token_estimate`, `context_size`: tokens of a request, counted and estimated, and its limit
- `context_report`: what fills the context window, as people see it
- `compaction_plan`, `compaction`: what a compaction replaces, and what a model reads after it
- `documents`: the text of attached PDF and Office files: what a model is shown, ranges, and search
"""
