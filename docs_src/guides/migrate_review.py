import asyncio
from typing import Any

from everturn import Agent, App, Question, ToolContext
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, say


def write(request: ModelRequest) -> list[Any]:
    is_final = "shorter" in request.messages[-1].text
    return say("Tea: 3 euros." if is_final else "Tea costs 3 euros.")


# These models follow a script. Yours: "openai:gpt-5.2" for all three.
questions = say('["What does tea cost?", "Which kinds of tea are there?"]')
planner = Agent(ScriptedModel(questions), name="planner", output_type=list[str])
searcher = Agent(ScriptedModel(say("3 euros, green and black")), name="searcher")
writer = Agent(ScriptedModel(write), name="writer")
app = App(agents=[planner, searcher, writer], store="memory")  # or "articles.db"


def publish(draft: str) -> None:
    print("published:", draft)


@app.workflow
async def article(ctx: ToolContext, topic: str) -> str:
    questions = await ctx.run_agent(planner, f"What should I ask about {topic}?")
    searches = [ctx.run_agent(searcher, question) for question in questions]
    notes = await asyncio.gather(*searches)  # Send: nodes that run in parallel
    feedback = ""
    while True:  # an edge that leads back to "write"
        draft = await ctx.run_agent(writer, f"{topic}: {notes} {feedback}")
        answer = await ctx.ask(Question(f"Publish? {draft}"))  # interrupt()
        if answer.allowed and not answer.result:
            break
        feedback = answer.result or answer.reason
    await ctx.step("publish", publish, draft)  # runs once
    return draft


async def main() -> None:
    async with app:
        run = await article.start("tea", key="article about tea")
        result = await app.turn(run.id).result()  # or in another process
        await result.gates[0].submit("Make it shorter.")  # Command(resume="…")
        result = await result.resume()
        print(result.gates[0].arguments)
        await result.gates[0].approve()
        print("returned:", await run.result())


if __name__ == "__main__":
    asyncio.run(main())
