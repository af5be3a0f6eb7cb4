import asyncio
from textwrap import shorten

from everturn import EverturnError
from everturn.tools import EgressPolicy

NAMES = {
    "example.org": ["93.184.215.14"],
    "two-faced.example": ["93.184.215.14", "10.0.0.7"],
    "wiki.corp.example": ["10.0.0.8"],
}


async def look_up(host: str) -> list[str]:
    """Replaces the system's resolver, so that the example needs no network."""
    return NAMES[host]


exceptions, denied = ["wiki.corp.example:443"], ["*.bank.example"]
policy = EgressPolicy(allow=exceptions, deny=denied, resolve=look_up)


async def main() -> None:
    for text in (
        "https://example.org/news",
        "https://wiki.corp.example/",
        "https://two-faced.example/",
        "http://127.0.0.1/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://2130706433/",
        "http://printer/",
        "https://example.org:8443/",
        "https://my.bank.example/",
        "file:///etc/passwd",
    ):
        try:
            place = await policy.resolve(policy.parse(text))
            print(f"{text}: {', '.join(map(str, place.addresses))}")
        except EverturnError as error:
            print(shorten(f"{text}: {error}", 84, placeholder=" …"))


if __name__ == "__main__":
    asyncio.run(main())
