import json
import os
from typing import Any

from openai import OpenAI

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "refund",
            "description": "Refund a customer.",
            "parameters": {
                "type": "object",
                "properties": {
                    "order": {"type": "string"},
                    "cents": {"type": "integer"},
                },
                "required": ["order", "cents"],
            },
        },
    }
]


def refund(order: str, cents: int) -> str:
    return f"refunded {cents} for {order}"


def ask_person(name: str, arguments: str) -> bool:
    return input(f"{name} {arguments}? ") == "y"  # and if the process dies here?


def run(text: str) -> str:
    client, model = OpenAI(), os.environ["MODEL"]
    messages: Any = [{"role": "user", "content": text}]
    for _ in range(10):
        request: Any = {"model": model, "messages": messages, "tools": TOOLS}
        with client.chat.completions.stream(**request) as stream:
            answer: Any = stream.get_final_completion().choices[0].message
        messages.append(answer)
        if not answer.tool_calls:
            return answer.content or ""
        for call in answer.tool_calls:
            name, arguments = call.function.name, call.function.arguments
            if ask_person(name, arguments):
                result = refund(**json.loads(arguments))  # and if it dies right here?
            else:
                result = "the person said no"
            tool_message = {"role": "tool", "tool_call_id": call.id, "content": result}
            messages.append(tool_message)
    raise RuntimeError("it went on and on")


if __name__ == "__main__":
    print(run("Give order 7 its 900 cents back"))
