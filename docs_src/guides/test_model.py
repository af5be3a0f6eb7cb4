from everturn import Price, RetryPolicy, get_model
from everturn.core.ports import Model
from everturn.testing.contracts import ProviderModelContract


class TestMyModel(ProviderModelContract):
    format = "chat"  # or "messages", or "responses"
    has_seals = has_pdf = False  # what it cannot do

    def connect(
        self,
        url: str,
        model: str,
        key: str,
        price: Price | None,
        retry: RetryPolicy,
    ) -> Model:
        return get_model(  # yours here
            f"compatible:{model}",
            base_url=f"{url}/v1",
            key=key,
            price=price,
            retry=retry,
        )
