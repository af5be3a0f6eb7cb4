from everturn import get_model
from everturn.models import Model, Price, RetryPolicy
from everturn.testing.contracts import ProviderModelContract


class TestMyModel(ProviderModelContract):
    format = "chat"  # or "messages", or "responses"
    has_seals = has_pdf = False  # features that the adapter lacks

    def connect(
        self,
        url: str,
        model: str,
        key: str,
        price: Price | None,
        retry: RetryPolicy,
    ) -> Model:
        return get_model(  # your adapter here
            f"compatible:{model}",
            base_url=f"{url}/v1",
            key=key,
            price=price,
            retry=retry,
        )
