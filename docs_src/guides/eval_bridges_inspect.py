# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# --8<-- [start:task]
from inspect_ai import Task, task

from everturn.evals.bridges.inspect_ai import to_inspect


@task
def refunds() -> Task:
    return to_inspect("examples/support-bot/recorded")
    # A model under test: to_inspect(…, model="openai:gpt-5.2", tools=[refund])
    # An agent whose tools run: to_inspect(…, agent=desk)


# --8<-- [end:task]
