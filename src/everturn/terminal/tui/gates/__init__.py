"""Approval dialogs: show a gate in full, and answer it with a key.

`dialog` is the screen; `summary` turns a gate into rows, with warnings from `risks` and `confusables`, and `panels`,
`form` and `review` take answers that need more than a key.

- `dialog`: the screen of one gate
- `summary`: a gate as rows of text
- `rows`: styled rows, wrapped and never truncated
- `scroll`: a scrolling widget of rows that knows what was read
- `diff`: a diff as rows, one column or side by side
- `answer_keys`: the keys that answer a gate, and error messages
- `keys`: key bar and checkbox
- `panels`: panels for a rule, a reason, or a manual result
- `form`: panel for a form or edited arguments
- `fields`: one form field
- `review`: review of a result
- `redaction`: cuts in a text that can be undone
- `text_view`: a text area that escapes control characters
- `table`: a table that keeps its cursor
- `risks`: risk hints for arguments
- `risk_table`: the patterns and the texts of the hints, from risk_table.json
- `confusables`: lookalike words and mixed text direction
"""
