/** Audit section: the audit log with filters, newest first. */
import { useEffect, useState } from "preact/hooks";
import type { AuditPage } from "@everturn/client";
import { attempt } from "../../app/app";
import { format } from "../../app/texts";
import { Button, Field, Spinner } from "../../ui/components";
import { DataTable } from "./parts";
import { searchAudit } from "./peopleApi";
import { useTexts } from "../../locales/adminAudit.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const PAGE = 100;
type Records = AuditPage["records"];
const NOTHING = { by: "", did: "", on: "", since: "", until: "" };

/** Seconds since 1970 of a day in this time zone; `after` is the day behind it. */
const startOf = (day: string, after = 0) => (day ? new Date(`${day}T00:00:00`).getTime() / 1000 + after * 86_400 : undefined);

export function Audit() {
  const t = useTexts();
  const a = useAdmin();
  const [where, setWhere] = useState(NOTHING);
  const [records, setRecords] = useState<Records | null>(null);
  const [hasMore, setMore] = useState(false);
  const load = async (before?: number) => {
    const { by, did, on, since, until } = where;
    const page = await attempt(searchAudit({ by: by || undefined, did: did || undefined, on: on || undefined, since: startOf(since), until: startOf(until, 1), before, limit: PAGE }));
    if (!page) return;
    setRecords((shown) => (before && shown ? [...shown, ...page.records] : page.records));
    setMore(page.records.length === PAGE);
  };
  useEffect(() => void load(), []);
  const set = (name: keyof typeof NOTHING) => (event: { currentTarget: HTMLInputElement }) => setWhere({ ...where, [name]: event.currentTarget.value });
  const text = (name: "by" | "did" | "on", label: string, hint?: string) => (
    <Field label={label} hint={hint}><input class="input" type="text" value={where[name]} maxLength={1000} onInput={set(name)} /></Field>
  );
  const day = (name: "since" | "until", label: string) => <Field label={label}><input class="input" type="date" value={where[name]} onInput={set(name)} /></Field>;
  return (
    <>
      <p class="muted">{t.about}</p>
      <form class="card fields dense" onSubmit={(event) => { event.preventDefault(); void load(); }}>
        {text("by", t.by)}
        {text("did", t.did, t.didHint)}
        {text("on", t.on)}
        {day("since", t.since)}
        {day("until", t.until)}
        <div class="row"><Button kind="primary" type="submit" icon="search">{t.search}</Button></div>
      </form>
      {!records ? <Spinner label={a.loading} /> : records.length === 0 ? <p class="card">{t.none}</p> : (
        <DataTable wide label={t.table} head={[t.at, t.by, t.did, t.on, t.detail]}>
          {records.map((record) => (
            <tr key={record.n}>
              <td class="when">{format.moment(record.at)}</td>
              <td><bdi>{record.by}</bdi></td>
              <td><code>{record.did}</code></td>
              <td class="wide"><bdi>{record.on}</bdi></td>
              <td class="wide small muted">{detailText(record.detail ?? "")}</td>
            </tr>
          ))}
        </DataTable>
      )}
      {records && hasMore && <div class="row"><Button onClick={() => void load(records.at(-1)?.n)}>{t.more}</Button></div>}
    </>
  );
}

/** The details of a record as `name: value`, without what is empty; times are shown as such. */
export function detailText(detail: string): string {
  let fields: unknown;
  try {
    fields = JSON.parse(detail);
  } catch {
    return detail;
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return detail;
  const shown = (name: string, value: unknown) => (name === "expires" && typeof value === "number" ? format.moment(value) : typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(fields).filter(([, value]) => value !== "" && value !== false && value !== null && value !== 0).map(([name, value]) => `${name}: ${shown(name, value)}`).join(" · ");
}
