"""Fault injection: kills and disturbs a whole installation while turns run, and reports every violated invariant.

Processes die, halt or raise at named points of the code (`everturn.failpoints`). A ledger outside of the processes
records what was really done. When all is quiet, checks compare the log with the ledger.

- `plan`: fault plans; at which points a process dies, halts or raises
- `ledger`: the ledger of effects, requests and acknowledgements
- `scenario`: a model and tools that answer alike in every process
- `figures`: percentiles, and reports as JSON
- `evidence`: the log and the ledger of a session, prepared for the checks
- `checks`: the invariants, one pure function each
- `transcript`: normalizes a log, to compare two runs
- `sets`, `input_check`: compare acknowledged inputs with the turns in the logs
- `cell`, `worker`: a cluster on one machine, and its worker processes
- `nodes`, `api`, `api_tools`: an installation with API nodes, and its readers
- `kill`: campaign; kills the driver at every point of a turn
- `random_kills`: campaign; kills busy workers at random under many turns
- `fence`: campaign; stops a driver, and wakes it after another took over
- `input_loss`, `sender`: campaign; kills everything while clients send inputs
- `resume`: campaign; readers disconnect and resume
- `waiting_sessions`: campaign; the cost of sessions that wait for a person
- `schedules`: campaign; kills processes while scheduled turns fall due
- `webhooks`: campaign; kills senders of webhooks whose receiver fails half the time
- `blocked_loop`: campaign; a tool blocks the event loop of its worker
- `rolling_restart`, `guide_service`: campaign; a service is replaced while readers follow over HTTP
- `rolling_upgrade`, `versions`: campaign; a rolling upgrade between two releases
- `sabotage`: deliberate bugs, to test the checks
"""

from tools.chaos.checks import CHECKS, Violation, check
from tools.chaos.evidence import Evidence
from tools.chaos.ledger import EffectLedger, LedgerLine, read_ledger
from tools.chaos.plan import FaultInjected, FaultPlan, install_from_environment
from tools.chaos.scenario import ScenarioModel, acknowledge, ask, make_tools
from tools.chaos.sets import InputsReport, check_inputs
from tools.chaos.transcript import normalize_log

__all__ = [
    "CHECKS",
    "EffectLedger",
    "Evidence",
    "FaultInjected",
    "FaultPlan",
    "InputsReport",
    "LedgerLine",
    "ScenarioModel",
    "Violation",
    "acknowledge",
    "ask",
    "check",
    "check_inputs",
    "install_from_environment",
    "make_tools",
    "normalize_log",
    "read_ledger",
]
