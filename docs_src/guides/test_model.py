from everturn import Patience, Price, named
from everturn.core.ports import Model
from everturn.testing.contracts import ModelContract


class TestMyModel(ModelContract):
    format = "chat"  # or "messages", or "responses"
    has_seals = has_pdf = False  # what it cannot do

    def connect(
        self,
        url: str,
        model: str,
        key: str,
        price: Price | None,
        patience: Patience,
    ) -> Model:
        return named(  # yours here
            f"compatible:{model}",
            base_url=f"{url}/v1",
            key=key,
            price=price,
            patience=patience,
        )
