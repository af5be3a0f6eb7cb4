"""Outbound webhooks: tells other systems of events, from an outbox that appends write.

- `sender`: delivers what is due: signed, retried, dead letters at last
- `webhooks`: `app.webhooks`: create, list, rotate the secret, list and replay deliveries, delete
"""
