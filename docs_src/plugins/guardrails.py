import re

from everturn import Agent, Message, input_guardrail, output_guardrail
from everturn.plugins import InputContext, OutputContext
from everturn.testing import ScriptedModel, say

PASSWORD = re.compile(r"\bpassword is\b", re.IGNORECASE)
SSN = re.compile(r"\b\d{3}-\d{2}-\d{4}\b")


@input_guardrail
async def no_secrets(ctx: InputContext, message: Message) -> None:
    """Refuse messages that contain a password."""
    if PASSWORD.search(message.text):
        ctx.refuse("Please do not send passwords. Nobody has read this message.")


@output_guardrail(buffer="step")
async def no_ssn(ctx: OutputContext, text: str) -> str:
    """Redact social security numbers in everything the model writes."""
    return SSN.sub("***-**-****", text)


model = ScriptedModel(say("Her number is 078-05-1120."))
agent = Agent(model, plugins=[no_secrets, no_ssn])


def main() -> None:
    result = agent.run_sync("What is Ada's social security number?")
    print(result.status, "|", result.output)
    result = agent.run_sync("My password is tea")
    print(result.status, "|", result.text)


if __name__ == "__main__":
    main()
