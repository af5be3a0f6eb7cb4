"""What belongs to a tenant.

- `accounts`: tenants, users, credentials and audit records, and their port
- `audit`: roles of users, and records of the audit log
- `user_records`: passwords, budgets and invitations of users, and their port
- `sharing`: with whom a conversation is shared, and who may read it
- `settings`: models, agents, rules and other settings that are kept in the store
- `saved_prompts`: saved prompts and their arguments
- `signing_keys`: keys that sign callbacks, links and other tokens, and their rotation
- `encryption`: the port of keys that encrypt a tenant's data
"""
