"""A harness that tries to kill a turn, and says in words what it broke.

plan       at which named points of the code (`everturn.faults`) a process dies, halts or raises
ledger     what was really done, in a file outside the process that dies
scenario   a model, tools and inputs that any process answers alike
checks     log and ledger in, violations out: one pure function per invariant
"""

from everturn.testing.chaos.checks import CHECKS, Violation, check
from everturn.testing.chaos.evidence import Evidence
from everturn.testing.chaos.ledger import Ledger, Line, read_ledger
from everturn.testing.chaos.plan import FaultInjected, FaultPlan, install_from_environment
from everturn.testing.chaos.scenario import Scripted, acknowledge, ask, make_tools
from everturn.testing.chaos.sets import Inputs, check_inputs
from everturn.testing.chaos.transcript import plain

__all__ = [
    "CHECKS",
    "Evidence",
    "FaultInjected",
    "FaultPlan",
    "Inputs",
    "Ledger",
    "Line",
    "Scripted",
    "Violation",
    "acknowledge",
    "ask",
    "check",
    "check_inputs",
    "install_from_environment",
    "make_tools",
    "plain",
    "read_ledger",
]
