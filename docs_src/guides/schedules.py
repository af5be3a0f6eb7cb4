import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

from everturn import Agent, App
from everturn.testing import ScriptedModel, say

model = ScriptedModel(say("All systems ran without errors."))


async def main() -> None:
    reporter = Agent(model, name="reporter", instructions="You write reports.")
    async with App(agents=[reporter]) as app:  # store="postgresql://…" in production
        schedule = await app.schedules.create(
            "Write the report of the last day.",
            id="report",
            cron="30 8 * * 1-5",
            timezone="Europe/Berlin",
            agent="reporter",
        )
        due = datetime.fromtimestamp(schedule.due, ZoneInfo(schedule.timezone))
        print("the next one is at", f"{due:%H:%M}")

        run = await app.schedules.run_now("report")  # run it now
        result = await app.turn(f"{run.session}/{run.turn}")
        print(result.text)

        await app.schedules.pause("report")
        for row in await app.schedules.list():
            print(row.id, "paused" if row.is_paused else "active", row.started)


if __name__ == "__main__":
    asyncio.run(main())
