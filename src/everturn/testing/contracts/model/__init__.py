"""Model contracts: `ModelContract` for any model, and `ProviderModelContract` for one that speaks a wire format, tested
through `Chat` against a strict provider.

    class TestMine(ProviderModelContract):
        format = "chat"

        def connect(self, url, model, key, price, retry) -> Model:
            return MyModel(model, base_url=f"{url}/v1", key=key, ...)

An adapter declares in class attributes what it cannot do (`has_seals = False`, …; `bench` lists them), and the tests
skip that or expect the alternative.

- `port`: the rules of the `Model` port, for any model
- `bench`: the provider, models and chats of a test
- `wire`: reads the requests of every format into one form
- `output`: text, reasoning, finish reasons, usage
- `tool_calls`: tool calls and their results
- `requests`: prompt, parameters, tools, files and history of a request
- `history`: signatures, branches, other models, plugins
- `refusals`: refusals of a provider, retries, API keys
- `failures`: broken streams, timeouts, cancellation
"""

from everturn.testing.contracts.model.failures import FailuresContract
from everturn.testing.contracts.model.history import HistoryContract
from everturn.testing.contracts.model.output import OutputContract
from everturn.testing.contracts.model.port import ModelContract
from everturn.testing.contracts.model.refusals import RefusalsContract
from everturn.testing.contracts.model.requests import RequestsContract
from everturn.testing.contracts.model.tool_calls import ToolCallsContract
from everturn.testing.contracts.model.wire import WireRequest


class ProviderModelContract(
    OutputContract, ToolCallsContract, RequestsContract, HistoryContract, RefusalsContract, FailuresContract
):
    """A model adapter: answers arrive unchanged, requests are accepted, and failures harm nothing else."""


__all__ = ["ModelContract", "ProviderModelContract", "WireRequest"]
