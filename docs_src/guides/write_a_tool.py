import json
from typing import Literal

from everturn import tool


@tool(effects="read", timeout=10)
async def forecast(city: str, day: str = "today", unit: Literal["C", "F"] = "C") -> str:
    """Look up the weather of a day.

    Args:
        city: the name of the city, in English
        day: a weekday, or `today`
    """
    return f"{city}, {day}: sunny, 22 {unit}"


def main() -> None:
    print(forecast.spec.name, "|", forecast.spec.description, "|", forecast.spec.effects)
    print(json.dumps(forecast.spec.schema, indent=2))


if __name__ == "__main__":
    main()
