"""Parts that buses between processes share.

- `codec`: frames as messages, ids as subjects; pure
- `publisher`: what this process publishes
- `inbound`: what other processes publish, for readers in this one
- `tail`: a reader in this process
"""
