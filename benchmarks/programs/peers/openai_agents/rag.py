"""Answers from documents: they are looked up before the model is asked, and an answer cites one."""

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    Runner,
    input_guardrail,
    output_guardrail,
)

DOCUMENTS = {
    "returns": "Goods may be returned within 30 days.",
    "hours": "We open at nine.",
}


def documents(ctx, agent):
    found = [
        f"[{name}] {text}" for name, text in DOCUMENTS.items() if name in ctx.context
    ]
    return "Answer from the documents, and cite one: [name].\n" + "\n".join(found)


@input_guardrail(run_in_parallel=False)
async def no_passwords(ctx, agent, input):
    return GuardrailFunctionOutput(
        output_info=None, tripwire_triggered="password" in ctx.context
    )


@output_guardrail
async def cites(ctx, agent, output):
    cited = any(f"[{name}]" in output for name in DOCUMENTS)
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=not cited)


agent = Agent(
    name="agent",
    model="gpt-5.2",
    instructions=documents,
    input_guardrails=[no_passwords],
    output_guardrails=[cites],
)


def ask(question: str) -> str:
    try:
        result = Runner.run_sync(agent, question, context=question)
    except InputGuardrailTripwireTriggered:
        return "I cannot help with that."
    except OutputGuardrailTripwireTriggered as error:
        items = [item.to_input_item() for item in error.run_data.new_items]
        messages = [{"role": "user", "content": question}, *items]
        messages += [{"role": "user", "content": "Cite a document."}]
        result = Runner.run_sync(agent, messages, context=question)
    return result.final_output.replace("123-45-6789", "***")


for question in (
    "What about returns?",
    "My password is 1234.",
    "What are your hours?",
):
    print(ask(question))
