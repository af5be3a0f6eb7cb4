"""A real job: `everturn` in a folder with a bug, a model that is a program and does not know the bug, and a person.

- `projects`: source distributions from a package index, unpacked as git repositories with an environment for their tests.
- `mutation`: bugs: one token of the source replaced by another, chosen by a seed, such that a test fails.
- `debugger`: the model: a program that reads the results of its tool calls, tries changes and commits the one that helps.
- `model_server`: the endpoint (OpenAI Chat Completions) behind which the program answers.
- `screen`: a terminal: the program in it, and the characters that it has drawn.
- `person`: the person at the terminal: types the task, and answers what is asked.
- `campaign`: the program; `report`: what is written down of a run.
"""
