"""Access to permission rules: those of administrators, what they decide, and why.

- `settings`: `access.rule_settings`: permission rules of administrators
- `dry_run`: what a draft of rules would have decided about past calls
- `past_calls`: the last tool calls of a tenant
- `explain`: explains how the rules decide on a call
- `explain_view`: rules and explanations, as the caller may see them
"""
