from everturn import Agent
from everturn.testing import ScriptedModel, say

agent = Agent("anthropic:claude-opus-5", instructions="Answer in one sentence.")

answer = "Because air scatters blue light more than red."


def main() -> None:
    # Replaces the vendor's model, so that the example needs no network and no key.
    with agent.override(model=ScriptedModel(say(answer))):
        result = agent.run_sync("Why is the sky blue?")  # or: await agent.run(...)
        print(result.output, result.usage.output)


if __name__ == "__main__":
    main()
