/** Schedules section: all schedules of the tenant, by user. Messages of other people are private to them. */
import { useState } from "preact/hooks";
import type { ScheduleView } from "@everturn/client";
import { useFetch, useInterval } from "../../app/useFetch";
import { fetchSchedules } from "../schedules/api";
import { ScheduleRows } from "../schedules/schedules";
import { DataTable, Loaded } from "./parts";
import "../schedules/schedules.css";
import { useTexts } from "../../locales/adminSchedules.gen";

const INTERVAL = 10; // seconds

export function TenantSchedules() {
  const t = useTexts();
  const fetched = useFetch(fetchSchedules);
  const [user, setUser] = useState<string | null>(null);
  const [edited, setEdited] = useState<string | null>(null);
  useInterval(INTERVAL, fetched.reload);
  return (
    <div class="section schedules">
      <p class="muted">{t.about}</p>
      <Loaded of={fetched}>{(rows) => {
        if (!rows.length) return <p class="card">{t.none}</p>;
        const users = countByUser(rows);
        const nameOf = (name: string) => name || t.nobody;
        const shown = rows.filter((row) => user === null || row.by === user);
        return (
          <>
            <DataTable label={t.users} head={[t.user, t.schedules, t.active, t.started, t.missed]} numbers={4}>
              {users.map((row) => (
                <tr key={row.user}>
                  <th scope="row"><bdi>{nameOf(row.user)}</bdi></th>
                  <td class="number">{row.all}</td>
                  <td class="number">{row.active}</td>
                  <td class="number">{row.started}</td>
                  <td class="number">{row.missed}</td>
                </tr>
              ))}
            </DataTable>
            {users.length > 1 && (
              <label class="row"><span>{t.shown}</span>
                <select class="input" value={user ?? "*"} onChange={(event) => setUser(event.currentTarget.value === "*" ? null : event.currentTarget.value)}>
                  <option value="*" selected={user === null}>{t.all}</option>
                  {users.map((row) => <option key={row.user} value={row.user} selected={row.user === user}>{nameOf(row.user)}</option>)}
                </select>
              </label>
            )}
            <ScheduleRows rows={shown} edited={edited} onEdit={setEdited} onDone={() => { setEdited(null); fetched.reload(); }} reload={fetched.reload} />
          </>
        );
      }}</Loaded>
    </div>
  );
}

export interface UserSchedules { user: string; all: number; active: number; started: number; missed: number }

export function countByUser(rows: readonly ScheduleView[]): UserSchedules[] {
  const users = new Map<string, UserSchedules>();
  for (const row of rows) {
    const counts = users.get(row.by) ?? { user: row.by, all: 0, active: 0, started: 0, missed: 0 };
    users.set(row.by, {
      ...counts, all: counts.all + 1, active: counts.active + Number(!row.is_paused && row.due > 0), started: counts.started + row.started, missed: counts.missed + row.missed,
    });
  }
  return [...users.values()].sort((a, b) => (a.user < b.user ? -1 : 1));
}
