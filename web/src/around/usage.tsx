/** What was used, by day and agent: bars to look at, and a table to read. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Spent, UsageView } from "@everturn/client";
import { client, explain } from "../app/app";
import { say, words } from "../app/words";
import { Button, ErrorLine, Fold, Spinner } from "../ui/kit";
import { amount, chartOf, MEASURES, type Chart, type Measure } from "./charts";
import "./usage.css";

const useWords = words(
  {
    title: "Usage", days: (count: number) => `${count} days`, range: "Range", measure: "What is shown", tokens: "Tokens", cost: "Cost", steps: "Steps", calls: "Tool calls",
    caption: (what: string, days: number) => `${what} in the last ${days} days, by agent`, none: "Nothing was used in this time.", table: "As a table", day: "Day",
    agent: "Agent", input: "in", output: "out", cached: "cached", unnamed: "no agent", rest: "others", loading: "Loading", again: "Try again",
    unpriced: "What has no known price is not in the cost.", utc: "Days are those of UTC.", part: (agent: string, day: string, value: string) => `${day}, ${agent}: ${value}`,
  },
  {
    title: "用量", days: (count: number) => `${count} 天`, range: "时间范围", measure: "显示内容", tokens: "Token", cost: "费用", steps: "步骤", calls: "工具调用",
    caption: (what: string, days: number) => `最近 ${days} 天的用量（${what}），按助手划分`, none: "这段时间没有用量。", table: "表格", day: "日期",
    agent: "助手", input: "输入", output: "输出", cached: "缓存", unnamed: "无助手", rest: "其他", loading: "加载中", again: "重试",
    unpriced: "价格未知的部分不计入费用。", utc: "日期按 UTC 计算。", part: (agent: string, day: string, value: string) => `${day}，${agent}：${value}`,
  },
);

const RANGES = [7, 30, 90];
const DAY = 86_400;

export function Usage() {
  const t = useWords();
  const [days, setDays] = useState(30);
  const [measure, setMeasure] = useState<Measure>("tokens");
  const [{ view, problem }, setRead] = useState<{ view?: UsageView; problem?: string }>({});
  const [tries, setTries] = useState(0);
  const today = new Date().toISOString().slice(0, 10);
  useEffect(() => {
    let isWanted = true;
    const since = Math.max(0, Date.parse(`${today}T00:00:00Z`) / 1000 - (days - 1) * DAY);
    client.usage(since).then((found) => isWanted && setRead({ view: found }), (error: Error) => isWanted && setRead({ problem: explain(error) }));
    return () => void (isWanted = false);
  }, [days, today, tries]);
  const chart = useMemo(() => view && chartOf(view.days, measure, days, today, t.rest), [view, measure, days, today, t]);
  return (
    <div class="page usage">
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          <div class="row" role="group" aria-label={t.range}>
            {RANGES.map((one) => <Button key={one} little kind={one === days ? "primary" : undefined} aria-pressed={one === days} onClick={() => setDays(one)}>{t.days(one)}</Button>)}
          </div>
        </div>
        {problem && <div class="row wrap"><ErrorLine>{problem}</ErrorLine><Button little onClick={() => setTries(tries + 1)}>{t.again}</Button></div>}
        {!view && !problem && <Spinner label={t.loading} />}
        {view && <Tiles total={view.total} measure={measure} onPick={setMeasure} />}
        {view && chart && (view.days.length ? <Figure chart={chart} measure={measure} days={days} /> : <p class="card muted">{t.none}</p>)}
        {view && view.days.length > 0 && <Table view={view} />}
        <p class="small muted">{t.unpriced} {t.utc}</p>
      </div>
    </div>
  );
}

const told = (value: number, measure: Measure) => (measure === "cost" ? say.cost(value) : say.number(value));

/** The sums, which are the choice of what the bars show too. */
function Tiles({ total, measure, onPick }: { total: Spent; measure: Measure; onPick: (measure: Measure) => void }) {
  const t = useWords();
  const { usage = {} } = total;
  return (
    <div class="tiles" role="group" aria-label={t.measure}>
      {MEASURES.map((one) => (
        <button key={one} type="button" class="tile card" aria-pressed={one === measure} onClick={() => onPick(one)}>
          <span class="small muted">{t[one]}</span>
          <span class="sum">{one === "cost" && usage.cost == null ? "–" : told(amount(total, one), one)}</span>
          {one === "tokens" && <span class="small muted">{t.input} {say.number(usage.input ?? 0)} · {t.output} {say.number(usage.output ?? 0)}{usage.cached ? ` · ${t.cached} ${say.number(usage.cached)}` : ""}</span>}
        </button>
      ))}
    </div>
  );
}

// The drawing is so many units wide and high; the page stretches it.
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 220, 60, 24, 10];

function Figure({ chart, measure, days }: { chart: Chart; measure: Measure; days: number }) {
  const t = useWords();
  const { bars, agents, most } = chart;
  const wide = (WIDTH - LEFT) / bars.length;
  const high = HEIGHT - BOTTOM - TOP;
  const every = Math.ceil(bars.length / 6);
  const named = (agent: string) => agent || t.unnamed;
  return (
    <figure class="card chart">
      <figcaption class="row wrap small">
        <span class="grow">{t.caption(t[measure], days)}</span>
        {agents.map((agent, at) => <span key={agent} class="row key"><span class={`swatch fill-${at}`} aria-hidden="true" />{named(agent)}</span>)}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t.caption(t[measure], days)}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={LEFT} x2={WIDTH} y1={TOP + high * (1 - share)} y2={TOP + high * (1 - share)} />
            <text class="tick" x={LEFT - 6} y={TOP + high * (1 - share) + 4} text-anchor="end">{told(most * share, measure)}</text>
          </g>
        ))}
        {bars.map((bar, number) => {
          let below = 0;
          return (
            <g key={bar.day}>
              {bar.pieces.map((piece, at) => {
                if (!piece) return null;
                const height = Math.max(1, (piece / most) * high);
                below += height;
                return (
                  <rect key={at} class={`fill-${at}`} x={LEFT + wide * number + wide * 0.15} width={wide * 0.7} y={TOP + high - below} height={height}>
                    <title>{t.part(named(agents[at]!), bar.day, told(piece, measure))}</title>
                  </rect>
                );
              })}
              {(bars.length - 1 - number) % every === 0 && <text class="tick" x={LEFT + wide * (number + 0.5)} y={HEIGHT - 6} text-anchor="middle">{bar.day.slice(5)}</text>}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

function Table({ view }: { view: UsageView }) {
  const t = useWords();
  const rows = [...view.days].sort((a, b) => (a.day === b.day ? (a.agent < b.agent ? -1 : 1) : a.day < b.day ? 1 : -1));
  return (
    <Fold class="card" summary={<span>{t.table}</span>}>
      <div class="scroll" tabIndex={0} role="region" aria-label={t.table}>
        <table>
          <thead><tr><th scope="col">{t.day}</th><th scope="col">{t.agent}</th>{MEASURES.map((one) => <th key={one} scope="col" class="number">{t[one]}</th>)}</tr></thead>
          <tbody>
            {rows.map(({ day, agent, spent }) => (
              <tr key={`${day} ${agent}`}>
                <th scope="row">{day}</th>
                <td>{agent || t.unnamed}</td>
                {MEASURES.map((one) => <td key={one} class="number">{one === "cost" && spent.usage?.cost == null ? "–" : told(amount(spent, one), one)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Fold>
  );
}
