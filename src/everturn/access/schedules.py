"""Schedule access: the tenant's schedules. A member changes their own; those of others, and of a configuration, take an owner.

A schedule's turns have the authority of its user when they start, and whoever changes its message becomes its user.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace as replace_fields

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.core.schedules import Schedule, ScheduleRun
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import ConfigError, UnknownSchedule
from everturn.schedules.schedules import Schedules

MOST_LISTED: Final = 200  # schedules on a page
MAX_SCHEDULES: Final = 1000  # of a tenant, by the API
MOST_PLANNED: Final = 5  # planned times shown of a schedule
OTHERS: Final = "a schedule of another user, or of the configuration,"


class ScheduleAccess:
    """Access to schedules."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def list(self, limit: int = MOST_LISTED, after: str = "") -> api.ScheduleList:
        """A page of the tenant's schedules, by id."""
        limit = max(1, min(limit, MOST_LISTED))
        with self.scope.tenant_scope():
            found = await self._schedules.list(tenant=self._tenant, limit=limit, after=after)
        return api.ScheduleList(
            schedules=[self._view(row) for row in found if self._is_shown(row)],
            next=found[-1].id if len(found) == limit else "",
        )

    @needs("viewer")
    async def get(self, schedule: str) -> api.ScheduleView:
        """One schedule, with its last runs."""
        found = await self._get(schedule)
        if not self._is_shown(found):
            raise UnknownSchedule("there is no such schedule")
        return self._view(found)

    def _is_shown(self, schedule: Schedule) -> bool:
        """Whether the caller may see a schedule: their own, one of nobody or of the configuration, and owners all."""
        is_owner = is_at_least(self.scope.principal.role, "owner")
        return is_owner or schedule.origin == "config" or schedule.by in ("", self.scope.principal.user)

    def _view(self, schedule: Schedule) -> api.ScheduleView:
        """A schedule as the caller may see it: an owner manages those of others without their messages."""
        is_private = schedule.origin != "config" and schedule.by not in ("", self.scope.principal.user)
        return schedule_view(replace_fields(schedule, text="", metadata=None) if is_private else schedule)

    @needs("member")
    async def plan(self, request: api.PlanSchedule) -> api.PlannedTimes:
        """The next planned times of a cron expression. One that is not valid yet is no error: a person is writing it."""
        try:
            times = self._schedules.plan(request.cron, request.timezone, request.until, MOST_PLANNED)
        except ConfigError as error:
            return api.PlannedTimes(times=[], problem=str(error))
        return api.PlannedTimes(times=times)

    @needs("member")
    async def create(self, request: api.NewSchedule) -> api.ScheduleView:
        """Create a schedule in the name of the caller."""
        agent = await self._checked_agent(request)
        with self.scope.tenant_scope():
            if await self.scope.store.schedules.count(self._tenant) >= MAX_SCHEDULES:
                raise ConfigError(f"a tenant has at most {MAX_SCHEDULES:,} schedules; delete one")
        created = await self._schedules.create(
            request.text,
            id=request.id or None,
            cron=request.cron,
            at=request.at or None,
            timezone=request.timezone,
            agent=agent,
            session=request.session,
            catch_up=request.catch_up,
            max_catch_up=request.max_catch_up,
            overlap=request.overlap,
            until=request.until or None,
            metadata=request.metadata,
            priority=request.priority,
            by=self.scope.principal.user,
            tenant=self._tenant,
        )
        await self.scope.audit_action("schedule.create", created.id)
        return schedule_view(created)

    @needs("member")
    async def replace(self, schedule: str, request: api.ScheduleDefinition) -> api.ScheduleView:
        """Replace the definition of a schedule; the caller becomes its user, and its runs are kept."""
        await self._own(schedule)
        fields = {name: getattr(request, name) for name in api.ScheduleDefinition.__struct_fields__}
        fields["agent"] = await self._checked_agent(request)
        wanted = Schedule(id=schedule, tenant=self._tenant, by=self.scope.principal.user, **fields)
        changed = await self._schedules.put(wanted)
        await self.scope.audit_action("schedule.replace", schedule)
        return schedule_view(changed)

    @needs("member")
    async def pause(self, schedule: str) -> api.ScheduleView:
        """Start no more runs until it is resumed."""
        await self._own(schedule)
        return self._view(await self._schedules.pause(schedule, tenant=self._tenant))

    @needs("member")
    async def resume(self, schedule: str) -> api.ScheduleView:
        """Continue with the next planned time."""
        await self._own(schedule)
        return self._view(await self._schedules.resume(schedule, tenant=self._tenant))

    @needs("member")
    async def run_now(self, schedule: str) -> api.ScheduleRunView:
        """Start a run now."""
        await self._own(schedule)
        await self.scope.server_context.meter.count_turn(self._tenant, self.scope.principal.user)
        return run_view(await self._schedules.run_now(schedule, tenant=self._tenant))

    @needs("member")
    async def delete(self, schedule: str) -> None:
        """Delete a schedule; its turns go on."""
        await self._own(schedule)
        await self.scope.audit_action("schedule.delete", schedule)
        await self._schedules.delete(schedule, tenant=self._tenant)

    async def _get(self, schedule: str) -> Schedule:
        if not is_id(schedule):
            raise UnknownSchedule("there is no such schedule")
        with self.scope.tenant_scope():
            return await self._schedules.get(schedule, tenant=self._tenant)

    async def _own(self, schedule: str) -> Schedule:
        """A schedule that the caller may change."""
        found = await self._get(schedule)
        if not self._is_shown(found):
            raise UnknownSchedule("there is no such schedule")
        if found.by != self.scope.principal.user:
            self.scope.require_role("owner", OTHERS)
        return found

    async def _checked_agent(self, request: api.ScheduleDefinition) -> str:
        """The name of an agent that can take turns without a client; its session must be the tenant's."""
        context = self.scope.server_context
        agent = context.agents.get(request.agent)
        if agent.definition is None or context.app.agents.get(agent.name) is not agent.definition:
            raise ConfigError(
                f"agent {agent.name!r} cannot be scheduled: it is not an agent of the app (App(agents=[…]))"
            )
        if request.session:
            # Its author only: the schedule would go on writing after a share is revoked.
            await self.scope.own_root_session(request.session, "manage")
        return agent.name

    @property
    def _schedules(self) -> Schedules:
        return self.scope.server_context.schedules

    @property
    def _tenant(self) -> str:
        return self.scope.principal.tenant


def run_view(run: ScheduleRun) -> api.ScheduleRunView:
    """A run, as the API shows it."""
    return api.ScheduleRunView(
        planned=run.planned,
        at=run.at,
        session=run.session,
        turn=run.turn,
        outcome=run.outcome,
        problem=run.problem,
    )


def schedule_view(row: Schedule) -> api.ScheduleView:
    """A schedule, as the API shows it."""
    definition = {name: getattr(row, name) for name in api.ScheduleDefinition.__struct_fields__}
    state = {name: getattr(row, name) for name in ("by", "created", "origin", "is_paused", "due", "started", "missed")}
    return api.ScheduleView(id=row.id, **definition, **state, runs=[run_view(run) for run in row.runs])
