/** Usage page: a chart and a table of usage by day and agent. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { CacheUsageView, Spent, UsageView } from "@everturn/client";
import { client, errorMessage } from "../app/app";
import { format } from "../app/texts";
import { Button, ErrorLine, Disclosure, Spinner } from "../ui/components";
import { amount, buildChart, MEASURES, type Chart, type Measure } from "./charts";
import "./usage.css";
import { useTexts } from "../locales/usage.gen";

const RANGES = [7, 30, 90];
const DAY = 86_400;

export function Usage() {
  const t = useTexts();
  const [days, setDays] = useState(30);
  const [measure, setMeasure] = useState<Measure>("tokens");
  const [{ view, problem }, setRead] = useState<{ view?: UsageView; problem?: string }>({});
  const [cache, setCache] = useState<CacheUsageView | null>(null);
  const [tries, setTries] = useState(0);
  const today = new Date().toISOString().slice(0, 10);
  useEffect(() => {
    let isCurrent = true;
    const since = Math.max(0, Date.parse(`${today}T00:00:00Z`) / 1000 - (days - 1) * DAY);
    client.usage(since).then((found) => isCurrent && setRead({ view: found }), (error: Error) => isCurrent && setRead({ problem: errorMessage(error) }));
    client.cacheUsage(since).then((found) => isCurrent && setCache(found), () => isCurrent && setCache(null));
    return () => void (isCurrent = false);
  }, [days, today, tries]);
  const chart = useMemo(() => view && buildChart(view.days, measure, days, today, t.rest), [view, measure, days, today, t]);
  return (
    <div class="page usage">
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          <div class="row" role="group" aria-label={t.range}>
            {RANGES.map((range) => <Button key={range} little kind={range === days ? "primary" : undefined} aria-pressed={range === days} onClick={() => setDays(range)}>{t.days(range)}</Button>)}
          </div>
        </div>
        {problem && <div class="row wrap"><ErrorLine>{problem}</ErrorLine><Button little onClick={() => setTries(tries + 1)}>{t.again}</Button></div>}
        {!view && !problem && <Spinner label={t.loading} />}
        {view && <MeasureTiles total={view.total} measure={measure} onPick={setMeasure} />}
        {view && chart && (view.days.length ? <UsageChart chart={chart} measure={measure} days={days} /> : <p class="card muted">{t.none}</p>)}
        {view && view.days.length > 0 && <UsageTable view={view} />}
        {cache && cache.collapses.length > 0 && <CacheTable view={cache} />}
        <p class="small muted">{t.everyone} {t.unpriced} {t.utc}</p>
      </div>
    </div>
  );
}

const formatAmount = (value: number, measure: Measure) => (measure === "cost" ? format.cost(value) : format.number(value));

/** The totals; each is also the button that selects what the chart shows. */
function MeasureTiles({ total, measure, onPick }: { total: Spent; measure: Measure; onPick: (measure: Measure) => void }) {
  const t = useTexts();
  const { usage = {} } = total;
  return (
    <div class="tiles" role="group" aria-label={t.measure}>
      {MEASURES.map((candidate) => (
        <button key={candidate} type="button" class="tile card" aria-pressed={candidate === measure} onClick={() => onPick(candidate)}>
          <span class="small muted">{t[candidate]}</span>
          <span class="sum">{candidate === "cost" && usage.cost == null ? "–" : formatAmount(amount(total, candidate), candidate)}</span>
          {candidate === "tokens" && <span class="small muted">{t.input} {format.number(usage.input ?? 0)} · {t.output} {format.number(usage.output ?? 0)}{usage.cached ? ` · ${t.cached} ${format.number(usage.cached)}` : ""}</span>}
        </button>
      ))}
    </div>
  );
}

// Units of the SVG view box; the page scales it.
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 220, 60, 24, 10];

function UsageChart({ chart, measure, days }: { chart: Chart; measure: Measure; days: number }) {
  const t = useTexts();
  const { bars, agents, max } = chart;
  const barWidth = (WIDTH - LEFT) / bars.length;
  const plotHeight = HEIGHT - BOTTOM - TOP;
  const labelEvery = Math.ceil(bars.length / 4); // more would overlap on a phone
  const named = (agent: string) => agent || t.unnamed;
  return (
    <figure class="card chart">
      <figcaption class="row wrap small">
        <span class="grow">{t.caption(t[measure], days)}</span>
        {agents.map((agent, index) => <span key={agent} class="row key"><span class={`swatch fill-${index}`} aria-hidden="true" />{named(agent)}</span>)}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t.caption(t[measure], days)}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={LEFT} x2={WIDTH} y1={TOP + plotHeight * (1 - share)} y2={TOP + plotHeight * (1 - share)} />
            <text class="tick" x={LEFT - 6} y={TOP + plotHeight * (1 - share) + 4} text-anchor="end">{measure === "cost" ? format.cost(max * share) : format.tokens(max * share)}</text>
          </g>
        ))}
        {bars.map((bar, number) => {
          let stacked = 0;
          return (
            <g key={bar.day}>
              {bar.pieces.map((piece, index) => {
                if (!piece) return null;
                const height = Math.max(1, (piece / max) * plotHeight);
                stacked += height;
                return (
                  <rect key={index} class={`fill-${index}`} x={LEFT + barWidth * number + barWidth * 0.15} width={barWidth * 0.7} y={TOP + plotHeight - stacked} height={height}>
                    <title>{t.part(bar.day, named(agents[index]!), formatAmount(piece, measure))}</title>
                  </rect>
                );
              })}
              {(bars.length - 1 - number) % labelEvery === 0 && <DayLabel day={bar.day} x={LEFT + barWidth * (number + 0.5)} isLast={number === bars.length - 1} />}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

/** The label of a day; the last one ends with the chart, or it would be cut off. */
function DayLabel({ day, x, isLast }: { day: string; x: number; isLast: boolean }) {
  return <text class="tick" x={isLast ? WIDTH : x} y={HEIGHT - 6} text-anchor={isLast ? "end" : "middle"}>{format.day(day)}</text>;
}

function UsageTable({ view }: { view: UsageView }) {
  const t = useTexts();
  const rows = [...view.days].sort((a, b) => (a.day === b.day ? (a.agent < b.agent ? -1 : 1) : a.day < b.day ? 1 : -1));
  return (
    <Disclosure class="card" summary={<span>{t.table}</span>}>
      <div class="scroll" tabIndex={0} role="region" aria-label={t.table}>
        <table>
          <thead><tr><th scope="col">{t.day}</th><th scope="col">{t.agent}</th>{MEASURES.map((measure) => <th key={measure} scope="col" class="number">{t[measure]}</th>)}</tr></thead>
          <tbody>
            {rows.map(({ day, agent, spent }) => (
              <tr key={`${day} ${agent}`}>
                <th scope="row">{day}</th>
                <td>{agent || t.unnamed}</td>
                {MEASURES.map((measure) => <td key={measure} class="number">{measure === "cost" && spent.usage?.cost == null ? "–" : formatAmount(amount(spent, measure), measure)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Disclosure>
  );
}

/** Requests that missed the prompt cache, by cause. */
function CacheTable({ view }: { view: CacheUsageView }) {
  const t = useTexts();
  return (
    <section class="card cache" aria-labelledby="cache-misses">
      <h2 id="cache-misses">{t.cache}</h2>
      <p class="small muted">{t.cacheAbout} {view.is_partial ? t.cachePartial : ""}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={t.cache}>
        <table>
          <thead><tr><th scope="col">{t.cause}</th><th scope="col">{t.model}</th><th scope="col" class="number">{t.requests}</th><th scope="col" class="number">{t.missed}</th></tr></thead>
          <tbody>
            {view.collapses.map(({ cause, model, requests, missed }) => (
              <tr key={`${cause} ${model}`}>
                <th scope="row">{t.causeOf(cause.replaceAll(" ", "_"))}</th>
                <td>{model}</td>
                <td class="number">{format.number(requests)}</td>
                <td class="number">{format.number(missed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
