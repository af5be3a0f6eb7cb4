# --8<-- [start:head]
import pytest

from everturn import Chat, TurnError, get_model, tool
from everturn.testing.provider import Call, Cut, Provider, Say, Status
from everturn.transport.replay import RecordedResponse, ReplayTransport


@tool(read_only=True)
async def read(path: str) -> str:
    """Read a file."""
    return f"{path} says hello"


async def test_a_file_is_read_and_told() -> None:
    async with Provider() as provider:
        steps = [[Call("read", '{"path": "a.txt"}')], [Say("It says hello.")]]
        provider.script("my-model", steps)
        model = get_model("my-model", base_url=f"{provider.url}/v1")
        async with Chat(model, tools=[read]) as chat:
            result = await (await chat.send("What is in a.txt?"))
        assert result.text == "It says hello."
        assert provider.refusals == []  # a real provider would accept it too
        assert provider.seen[-1].body["messages"][-1]["content"] == "a.txt says hello"


# --8<-- [end:head]
# --8<-- [start:breaks]
async def test_a_busy_server_is_asked_again_and_a_broken_answer_kept() -> None:
    async with Provider() as provider:
        busy = [Status(429, headers={"retry-after": "0"})]
        steps = [busy, [Say("As far as "), Cut()], [Say("Here.")]]
        provider.script("my-model", steps, sequence=True)
        async with Chat(get_model("my-model", base_url=f"{provider.url}/v1")) as chat:
            with pytest.raises(TurnError):
                await (await chat.send("How far?"))
            assert (await chat.messages())[-1].text == "As far as "
            assert (await (await chat.send("Continue"))).text == "Here."
        assert [seen.status for seen in provider.seen] == [429, 200, 200]


# --8<-- [end:breaks]
# --8<-- [start:refuses]
async def test_a_misspelt_parameter_is_refused() -> None:
    async with Provider() as provider:
        model = get_model("openai:plain", base_url=f"{provider.url}/v1")
        async with Chat(model) as chat:
            with pytest.raises(TurnError, match="Unknown parameter") as failed:
                await (await chat.send("Hi", params={"temprature": 0}))
        assert failed.value.kind == "request"
        assert provider.refusals == ["Unknown parameter: 'temprature'."]


# --8<-- [end:refuses]
# --8<-- [start:replay]
RECORDED = (
    b'data: {"choices": [{"delta": {"content": "Hello."}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_kept_answer_is_read_however_it_is_split(size: int) -> None:
    pieces = [RECORDED[at : at + size] for at in range(0, len(RECORDED), size)]
    # RecordedResponse.of(path, size) reads a file.
    transport = ReplayTransport([RecordedResponse(pieces)])
    model = get_model("groq:llama-3.3-70b", key="k", transport=transport)
    async with Chat(model) as chat:
        assert (await (await chat.send("Hi"))).text == "Hello."
    assert transport.posts[0].url == "https://api.groq.com/openai/v1/chat/completions"


# --8<-- [end:replay]
