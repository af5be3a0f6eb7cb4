/** Usage section: usage by user, model and agent, grouped by any of them. */
import { useState } from "preact/hooks";
import type { UserUsage } from "@everturn/client";
import { format } from "../../app/texts";
import { Button } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { DataTable, Loaded } from "./parts";
import { fetchUserUsage } from "./peopleApi";
import { useTexts } from "../../locales/adminUsage.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const RANGES = [1, 7, 30, 90];
type Grouping = "user" | "model" | "agent" | "all";
interface Sum { readonly keys: readonly string[]; tokens: number; steps: number; calls: number; cost: number | null }

/** Rows with the same keys added up, the largest first. */
export function sumUsage(rows: readonly UserUsage[], by: Grouping): Sum[] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const keys = by === "all" ? [row.user, row.model, row.agent] : [row[by]];
    const name = JSON.stringify(keys);
    const sum = sums.get(name) ?? { keys, tokens: 0, steps: 0, calls: 0, cost: null };
    const { usage = {}, steps = 0, calls = 0 } = row.spent;
    sum.tokens += (usage.input ?? 0) + (usage.output ?? 0);
    sum.steps += steps;
    sum.calls += calls;
    if (usage.cost != null) sum.cost = (sum.cost ?? 0) + usage.cost;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.tokens - a.tokens);
}

export function UserUsagePage() {
  const t = useTexts();
  const a = useAdmin();
  const [days, setDays] = useState(30);
  const [by, setBy] = useState<Grouping>("user");
  const fetched = useFetch(() => fetchUserUsage(Math.floor(Date.now() / 1000) - days * 86_400), days);
  const groupings: [Grouping, string][] = [["user", t.byUser], ["model", t.byModel], ["agent", t.byAgent], ["all", t.byAll]];
  const heads = by === "all" ? [t.byUser, t.byModel, t.byAgent] : [groupings.find(([name]) => name === by)![1]];
  return (
    <>
      <p class="muted">{t.about}</p>
      <div class="row wrap">
        <div class="row wrap grow" role="group" aria-label={t.by}>
          {groupings.map(([name, text]) => <Button key={name} little kind={name === by ? "primary" : undefined} aria-pressed={name === by} onClick={() => setBy(name)}>{text}</Button>)}
        </div>
        <div class="row wrap" role="group" aria-label={t.range}>
          {RANGES.map((range) => <Button key={range} little kind={range === days ? "primary" : undefined} aria-pressed={range === days} onClick={() => setDays(range)}>{t.days(range)}</Button>)}
        </div>
      </div>
      <Loaded of={fetched}>{({ rows }) => rows.length === 0 ? <p class="card">{t.none}</p> : (
        <DataTable label={a.usage} head={[...heads, t.tokens, t.steps, t.calls, t.cost]} numbers={4}>
          {sumUsage(rows, by).map((sum) => (
            <tr key={sum.keys.join("\n")}>
              {sum.keys.map((key, index) => (index ? <td key={index}><bdi>{key || t.unknown}</bdi></td> : <th key={index} scope="row"><bdi>{key || t.unknown}</bdi></th>))}
              <td class="number">{format.number(sum.tokens)}</td>
              <td class="number">{format.number(sum.steps)}</td>
              <td class="number">{format.number(sum.calls)}</td>
              <td class="number">{sum.cost === null ? "–" : format.cost(sum.cost)}</td>
            </tr>
          ))}
        </DataTable>
      )}</Loaded>
    </>
  );
}
