"""Structured output: the text of an answer is the JSON of a schema, whatever the vendor can enforce.

    request with params["output_schema"] → request as this vendor takes it → its chunks → chunks with that JSON as text

A schema is any JSON Schema, as pydantic writes them. How a vendor is held to it is one of three modes; the first that
the profile, the schema and the tools of the request allow is taken, or the one that `params["output_mode"]` names:

    native    the vendor enforces a schema: its documented subset of JSON Schema, with a root that it accepts
    tool      the model gives its answer as the arguments of a tool, which it must call; nobody above sees that call
    prompted  the schema is part of the system prompt, with the vendor's JSON mode where there is one

What a subset cannot say becomes wider, never narrower than a value of the type (bounds and patterns move into the
description), so whoever reads the answer still validates it. A shape that it cannot say (`dict[str, X]`, recursion) is no
reason to be wider: then the next mode is taken.

    plan            chooses the mode, and changes the request
    subsets         the documented subset of each vendor, with the source of each rule
    schema_facts    references, recursion and size of a JSON Schema
    schema_writer   a JSON Schema → the same in a subset, or why it cannot be said there
    output_reader   chunks → chunks whose text is the JSON
    json_text       finds the JSON in a streamed text
"""

from everturn.models.structured_output.output_reader import OutputReader, read_output
from everturn.models.structured_output.plan import OUTPUT_MODES, OutputPlan, as_object_text, plan_output

__all__ = ["OUTPUT_MODES", "OutputPlan", "OutputReader", "as_object_text", "plan_output", "read_output"]
