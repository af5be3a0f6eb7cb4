from everturn import Agent
from everturn.testing import ScriptedModel, say

# Follows a script, without network and key. Yours: model = "anthropic:claude-opus-5"
model = ScriptedModel(say("Hello! How can I help with your order?"))

support = Agent(model, instructions="You answer customers of a lamp shop.")


def main() -> None:
    result = support.run_sync("Hello")
    print(result.output)


if __name__ == "__main__":
    main()
