"""What every model keeps, through the front door: a chat on one side, a strict provider on the other.

    class TestMine(ModelContract):
        format = "chat"

        def connect(self, url, model, key, price, patience) -> Model:
            return MyModel(model, base_url=f"{url}/v1", key=key, ...)

What an adapter cannot do it says in class attributes (`has_seals = False`, …; they are listed in `bench.py`), and the
tests leave that out or expect what comes instead. One file per side of it:

    speaking.py      text, reasoning, why it stopped, what it cost
    calling.py       calls and their results
    asking.py        the prompt, parameters, tools, files, the history
    remembering.py   seals, branches, other models, plugins
    refusing.py      what a provider refuses, other tries, keys
    breaking.py      streams that break, silence, cancels

    bench.py         what a test works with
    wire.py          requests of every format, in our words
"""

from everturn.testing.contracts.model.asking import AskingContract
from everturn.testing.contracts.model.breaking import BreakingContract
from everturn.testing.contracts.model.calling import CallingContract
from everturn.testing.contracts.model.refusing import RefusingContract
from everturn.testing.contracts.model.remembering import RememberingContract
from everturn.testing.contracts.model.speaking import SpeakingContract
from everturn.testing.contracts.model.wire import Sent


class ModelContract(
    SpeakingContract, CallingContract, AskingContract, RememberingContract, RefusingContract, BreakingContract
):
    """A model: what it says is what was said, what it is asked is accepted, and what breaks harms nothing else."""


__all__ = ["ModelContract", "Sent"]
