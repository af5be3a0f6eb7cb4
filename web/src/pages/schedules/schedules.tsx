/** Schedules page: messages that start turns at planned times, of the user and of the configuration. */
import { useState } from "preact/hooks";
import type { ScheduleView } from "@everturn/client";
import { hasRole, me } from "../../app/app";
import { hrefFor } from "../../app/route";
import { useStore } from "../../app/store";
import { Button, ErrorLine, Spinner } from "../../ui/components";
import { useFetch, useInterval } from "../../app/useFetch";
import { fetchSchedules } from "./api";
import { isOwn, ScheduleCard } from "./card";
import { ScheduleForm } from "./form";
import "../admin/admin.css";
import "./schedules.css";
import { useTexts } from "../../locales/schedules.gen";

const INTERVAL = 5; // seconds

export function Schedules() {
  const t = useTexts();
  useStore(me);
  const fetched = useFetch(fetchSchedules);
  const [edited, setEdited] = useState<string | null>(null); // "": a new one
  useInterval(INTERVAL, fetched.reload);
  const rows = fetched.value?.filter((row) => isOwn(row) || !row.by || row.origin === "config");
  const done = () => { setEdited(null); fetched.reload(); };
  return (
    <div class="page admin schedules">
      <div class="inner">
        <header class="row wrap">
          <h1 class="grow">{t.title}</h1>
          {hasRole("member") && edited === null && <Button icon="add" onClick={() => setEdited("")}>{t.create}</Button>}
        </header>
        <p class="muted">{t.about} {hasRole("owner") && <a href={hrefFor({ page: "admin", section: "schedules" })}>{t.ofTenant}</a>}</p>
        {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
        {!rows && !fetched.problem && <Spinner label={t.loading} />}
        {edited === "" && <ScheduleForm onDone={done} onCancel={() => setEdited(null)} />}
        {rows?.length === 0 && edited === null && <p class="card">{t.none}</p>}
        {rows && <ScheduleRows rows={rows} edited={edited} onEdit={setEdited} onDone={done} reload={fetched.reload} />}
      </div>
    </div>
  );
}

export function ScheduleRows({ rows, edited, onEdit, onDone, reload }: {
  rows: readonly ScheduleView[]; edited: string | null; onEdit: (schedule: string | null) => void; onDone: () => void; reload: () => void;
}) {
  return (
    <ul class="items">
      {byNextTime(rows).map((row) => (
        <li key={row.id} class={edited === row.id ? undefined : "card"}>
          {edited === row.id ? <ScheduleForm view={row} onDone={onDone} onCancel={() => onEdit(null)} /> : <ScheduleCard view={row} onEdit={() => onEdit(row.id)} reload={reload} />}
        </li>
      ))}
    </ul>
  );
}

/** Those that run next first; then the paused ones, then those that have ended. */
export function byNextTime(rows: readonly ScheduleView[]): ScheduleView[] {
  const place = (row: ScheduleView) => (row.is_paused ? 1e12 : row.due || 2e12);
  return [...rows].sort((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1));
}
