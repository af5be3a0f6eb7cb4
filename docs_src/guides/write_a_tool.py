import json
from typing import Literal

from everturn import tool

Unit = Literal["C", "F"]


@tool(read_only=True, timeout=10)
async def forecast(city: str, day: str = "today", unit: Unit = "C") -> str:
    """Look up the weather of a day.

    Args:
        city: the name of the city, in English
        day: a weekday, or `today`
    """
    return f"{city}, {day}: sunny, 22 {unit}"


def main() -> None:
    spec = forecast.spec
    print(f"{spec.name} (read_only={spec.read_only}): {spec.description}")
    print(json.dumps(spec.schema, indent=2))


if __name__ == "__main__":
    main()
