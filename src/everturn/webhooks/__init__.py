"""Outbound webhooks: tells other systems of events, from an outbox that appends write.

- `sender`: delivers what is due: signed, retried, dead letters at last
- `push_notification`: what a browser is told of an approval, and whether it is
- `web_push_encryption`: encrypts a push message and authorizes its request
- `webhooks`: `app.webhooks`: create, list, rotate the secret, list and replay deliveries, delete
"""
