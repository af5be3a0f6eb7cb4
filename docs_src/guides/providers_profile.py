import asyncio

from msgspec.structs import replace

from everturn import Agent, get_model
from everturn.models import Profile
from everturn.testing.provider import Provider, Say

# --8<-- [start:shown]
ACME = Profile(
    vendor="acme",
    base_url="https://models.acme.example/v1",
    key="ACME_API_KEY",  # the environment variable
    max_tokens="max_completion_tokens",
    params={"temperature": 0.2},  # a turn can override it
    inputs=frozenset({"image"}),
    models={"tiny-*": {"inputs": frozenset[str]()}},  # these read text only
)
# --8<-- [end:shown]


async def main() -> None:
    async with Provider(key="secret") as provider:
        provider.script("large-1", [[Say("Hello from Acme.")]])
        profile = replace(ACME, base_url=f"{provider.url}/v1")
        environ = {"ACME_API_KEY": "secret"}
        model = get_model("acme:large-1", profile=profile, environ=environ)
        result = await Agent(model).run("Hello", params={"max_tokens": 50})
        print(result.output)
        sent = provider.seen[0].body
        print(model.name, sent["max_completion_tokens"], sent["temperature"])


if __name__ == "__main__":
    asyncio.run(main())
