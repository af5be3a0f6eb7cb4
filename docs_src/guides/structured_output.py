from decimal import Decimal
from typing import Literal

from pydantic import BaseModel

from everturn import Agent, OutputRetry
from everturn.testing import ScriptedModel, say


class Invoice(BaseModel):
    number: str
    total: Decimal
    currency: Literal["EUR", "USD"]


class NotAnInvoice(BaseModel):
    reason: str


# This model follows a script: its first two answers are wrong.
model = ScriptedModel(
    say('{"number": "R-7", "total": "120.50", "currency": "GBP"}'),
    say('{"number": "7", "total": "120.50", "currency": "EUR"}'),
    say('{"number": "R-7", "total": "120.50", "currency": "EUR"}'),
)
reader = Agent(model, output_type=Invoice | NotAnInvoice, output_retries=2)


@reader.output_validator
def check(output: Invoice | NotAnInvoice) -> Invoice | NotAnInvoice:
    if isinstance(output, Invoice) and not output.number.startswith("R-"):
        raise OutputRetry("An invoice number starts with R-.")
    return output


def main() -> None:
    result = reader.run_sync("Invoice R-7: 120.50 EUR, due in May")
    invoice = result.output
    if isinstance(invoice, Invoice):
        print(invoice.number, invoice.total, invoice.currency)
    print(f"{result.stats.steps} steps")


if __name__ == "__main__":
    main()
