"""Temporal engine: Temporal decides which process drives a session. For those who run Temporal already. See decision 0194.

A session that is wanted has one workflow, and a drive is one activity of it. Nothing else is in the workflow: our log is the
journal. A session that nobody wants has no running workflow.

- `engine`: `TemporalEngine`, which turns wakes into signals
- `worker`: runs activities of Temporal as drives in this process
- `workflow`: the workflow of a session
- `connection`: opens the client, and says what to check when Temporal does not answer
"""

from everturn.engine.temporal.connection import TemporalAddress
from everturn.engine.temporal.engine import TemporalEngine, TemporalHealth

__all__ = ["TemporalAddress", "TemporalEngine", "TemporalHealth"]
