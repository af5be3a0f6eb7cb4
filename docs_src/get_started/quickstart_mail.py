import sys

from everturn import Agent, App, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")  # a person approves each call; it never runs twice
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


invite = calls(call("send_mail", to="Ada", text="Lunch?"))
model = ScriptedModel(invite, say("Ada is invited."))
agent = Agent(model, name="assistant", tools=[send_mail])


def main(command: str) -> None:
    app = App(agents=[agent], store="lunch.db")
    # The same key is the same turn, in every process and after every restart.
    result = app.run_sync(agent, "Invite Ada to lunch", key="lunch with Ada")
    if command == "approve":
        for gate in result.gates:
            gate.approve_sync()
        result = result.resume_sync()
    print(result.status)
    for gate in result.gates:
        print(gate.tool, gate.arguments)
    if result.status == "completed":
        print(result.output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
