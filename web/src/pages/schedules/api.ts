/** API requests about schedules. */
import type { NewSchedule, PlannedTimes, ScheduleDefinition, ScheduleList, ScheduleRunView, ScheduleView, TurnView } from "@everturn/client";
import { client } from "../../app/app";

const path = (schedule: string) => `/api/schedules/${encodeURIComponent(schedule)}`;

/** All schedules that the user may see. A tenant has at most a few pages of them. */
export async function fetchSchedules(): Promise<ScheduleView[]> {
  const found: ScheduleView[] = [];
  let after = "";
  do {
    const page: ScheduleList = await client.get<ScheduleList>("/api/schedules", { after: after || undefined });
    found.push(...page.schedules);
    after = page.next;
  } while (after);
  return found;
}

export const createSchedule = (made: NewSchedule) => client.send<ScheduleView>("POST", "/api/schedules", made);
export const replaceSchedule = (schedule: string, definition: ScheduleDefinition) => client.send<ScheduleView>("PUT", path(schedule), definition);
export const deleteSchedule = (schedule: string) => client.send<void>("DELETE", path(schedule));
export const pauseSchedule = (schedule: string) => client.send<ScheduleView>("POST", `${path(schedule)}/pause`);
export const resumeSchedule = (schedule: string) => client.send<ScheduleView>("POST", `${path(schedule)}/resume`);
export const runSchedule = (schedule: string) => client.send<ScheduleRunView>("POST", `${path(schedule)}/run`);
export const planTimes = (cron: string, timezone: string, until = 0) => client.send<PlannedTimes>("POST", "/api/schedules/plan", { cron, timezone, until });
export const fetchTurn = (session: string, turn: string) =>
  client.get<TurnView>(`/api/sessions/${encodeURIComponent(session)}/turns/${encodeURIComponent(turn)}`);
