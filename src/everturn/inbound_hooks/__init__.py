"""Inbound hooks (incoming webhooks): signed requests of other systems that start turns or answer waiting ones.

- `signatures`: verifies Standard Webhooks, GitHub and Slack signatures
- `payload`: decodes a body, looks up fields, fills templates
- `hook`: the definition of a hook, and its check
- `call_log`: what became of deliveries, in the audit log
- `inbound_hooks`: `app.inbound_hooks`: add, list, receive a delivery
"""

from everturn.inbound_hooks.hook import InboundHook
from everturn.inbound_hooks.signatures import sign_delivery, verify_delivery

__all__ = ["InboundHook", "sign_delivery", "verify_delivery"]
