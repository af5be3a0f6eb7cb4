"""Answers from documents: they are looked up before the model is asked, and an answer cites one."""

from langchain.agents import create_agent
from langchain.agents.middleware import after_model, before_agent, dynamic_prompt
from langchain.messages import AIMessage, HumanMessage

DOCUMENTS = {
    "returns": "Goods may be returned within 30 days.",
    "hours": "We open at nine.",
}


@before_agent(can_jump_to=["end"])
def no_passwords(state, runtime):
    if "password" in state["messages"][-1].text:
        return {"messages": [AIMessage("I cannot help with that.")], "jump_to": "end"}


@dynamic_prompt
def documents(request):
    question = request.messages[0].text
    found = [
        f"[{name}] {text}" for name, text in DOCUMENTS.items() if name in question
    ]
    return "Answer from the documents, and cite one: [name].\n" + "\n".join(found)


@after_model(can_jump_to=["model"])
def cites(state, runtime):
    answer = state["messages"][-1]
    if not any(f"[{name}]" in answer.text for name in DOCUMENTS):
        return {"messages": [HumanMessage("Cite a document.")], "jump_to": "model"}
    return {
        "messages": [
            AIMessage(answer.text.replace("123-45-6789", "***"), id=answer.id)
        ]
    }


agent = create_agent(
    "openai:gpt-5.2", tools=[], middleware=[no_passwords, documents, cites]
)
for question in (
    "What about returns?",
    "My password is 1234.",
    "What are your hours?",
):
    result = agent.invoke({"messages": [{"role": "user", "content": question}]})
    print(result["messages"][-1].text)
