"""Schedule routes: messages that start turns at planned times."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.schedules import ScheduleAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import LIMIT, route_for

ID: Final = {"type": "string", "maxLength": 200}
SCHEDULE: Final = "/api/schedules/{schedule}"

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/schedules",
        ScheduleAccess.list,
        "List the schedules of the tenant.",
        lambda a: a.access.schedules.list(**a.query),
        name="schedules",
        answer=api.ScheduleList,
        query=(Param("limit", LIMIT), Param("after", ID, "`next` of the page before")),
    ),
    route_for(
        "POST",
        "/api/schedules",
        ScheduleAccess.create,
        "Send a message at planned times, or once at a time.",
        lambda a: a.access.schedules.create(a.body),
        name="create_schedule",
        body=api.NewSchedule,
        answer=api.ScheduleView,
        status=201,
    ),
    route_for(
        "POST",
        "/api/schedules/plan",
        ScheduleAccess.plan,
        "Compute the next planned times of a cron expression; nothing is stored.",
        lambda a: a.access.schedules.plan(a.body),
        name="plan_schedule",
        body=api.PlanSchedule,
        answer=api.PlannedTimes,
    ),
    route_for(
        "GET",
        SCHEDULE,
        ScheduleAccess.get,
        "Get a schedule with its last runs.",
        lambda a: a.access.schedules.get(a.ids["schedule"]),
        name="schedule",
        answer=api.ScheduleView,
    ),
    route_for(
        "PUT",
        SCHEDULE,
        ScheduleAccess.replace,
        "Replace the definition of a schedule; the caller becomes its user.",
        lambda a: a.access.schedules.replace(a.ids["schedule"], a.body),
        name="replace_schedule",
        body=api.ScheduleDefinition,
        answer=api.ScheduleView,
    ),
    route_for(
        "DELETE",
        SCHEDULE,
        ScheduleAccess.delete,
        "Delete a schedule; its running turns continue.",
        lambda a: a.access.schedules.delete(a.ids["schedule"]),
        name="delete_schedule",
        status=204,
    ),
    route_for(
        "POST",
        f"{SCHEDULE}/pause",
        ScheduleAccess.pause,
        "Pause a schedule: no runs start until it is resumed.",
        lambda a: a.access.schedules.pause(a.ids["schedule"]),
        name="pause_schedule",
        answer=api.ScheduleView,
    ),
    route_for(
        "POST",
        f"{SCHEDULE}/resume",
        ScheduleAccess.resume,
        "Resume a schedule, with its next planned time.",
        lambda a: a.access.schedules.resume(a.ids["schedule"]),
        name="resume_schedule",
        answer=api.ScheduleView,
    ),
    route_for(
        "POST",
        f"{SCHEDULE}/run",
        ScheduleAccess.run_now,
        "Start a run now.",
        lambda a: a.access.schedules.run_now(a.ids["schedule"]),
        name="run_schedule",
        answer=api.ScheduleRunView,
    ),
]
