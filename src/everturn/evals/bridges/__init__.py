"""Bridges to other libraries for evals: datasets and results of ours, run and shown by theirs.

Each bridge is imported by its own name and needs its library; the core does not know them.

- `runs`: a case or an agent run once, as both libraries need it
- `pydantic_evals`: datasets, tasks, evaluators and reports of pydantic-evals, with `pip install 'everturn[pydantic-evals]'`
- `inspect_ai`: tasks, solvers, scorers and logs of Inspect, with `pip install 'everturn[inspect]'`
- `inspect_messages`: the messages of a turn for it
"""
