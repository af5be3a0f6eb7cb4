"""Answers from documents: they are looked up before the model is asked, and an answer cites one."""

from pydantic_ai import Agent, ModelRetry, RunContext

DOCUMENTS = {
    "returns": "Goods may be returned within 30 days.",
    "hours": "We open at nine.",
}

agent = Agent("openai:gpt-5.2")


@agent.instructions
def documents(ctx: RunContext) -> str:
    found = [
        f"[{name}] {text}"
        for name, text in DOCUMENTS.items()
        if name in str(ctx.prompt)
    ]
    return "Answer from the documents, and cite one: [name].\n" + "\n".join(found)


@agent.output_validator
def cites(answer: str) -> str:
    if not any(f"[{name}]" in answer for name in DOCUMENTS):
        raise ModelRetry("Cite a document.")
    return answer.replace("123-45-6789", "***")


def ask(question: str) -> str:
    if "password" in question:
        return "I cannot help with that."
    return agent.run_sync(question).output


for question in (
    "What about returns?",
    "My password is 1234.",
    "What are your hours?",
):
    print(ask(question))
