"""Answers from documents: they are looked up before the model is asked, and an answer cites one."""

from everturn import Agent, Message, OutputRetry, RunContext, input_guardrail
from everturn.plugins import InputContext

DOCUMENTS = {
    "returns": "Goods may be returned within 30 days.",
    "hours": "We open at nine.",
}


@input_guardrail
def no_passwords(ctx: InputContext, message: Message) -> None:
    if "password" in message.text:
        ctx.refuse("I cannot help with that.")


agent = Agent("openai:gpt-5.2", plugins=[no_passwords])


@agent.instructions
def documents(ctx: RunContext) -> str:
    found = [
        f"[{name}] {text}" for name, text in DOCUMENTS.items() if name in ctx.prompt
    ]
    return "Answer from the documents, and cite one: [name].\n" + "\n".join(found)


@agent.output_validator
def cites(answer: str) -> str:
    if not any(f"[{name}]" in answer for name in DOCUMENTS):
        raise OutputRetry("Cite a document.")
    return answer.replace("123-45-6789", "***")


for question in (
    "What about returns?",
    "My password is 1234.",
    "What are your hours?",
):
    print(agent.run_sync(question).text)
