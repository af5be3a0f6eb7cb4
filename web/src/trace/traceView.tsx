/** Trace view: the numbers of a turn, and its timeline. Each step, call and wait is a row with its bar. */
import { useMemo, useState } from "preact/hooks";
import type { TraceSpan, TraceView } from "@everturn/client";
import { hrefFor } from "../app/route";
import { format } from "../app/texts";
import { showControls } from "../conversation/textEscapes";
import { Badge, Button, Icon, type IconName, type Tone } from "../ui/components";
import { buildRows, buildScale, tokensOf, type Scale, type TimelineRow } from "./timeline";
import { SentRequest } from "./sentRequest";
import "./trace.css";
import { useTexts } from "../locales/trace.gen";

const ICONS: Record<TraceSpan["kind"], IconName> = {
  step: "chat", retry: "redo", call: "tool", gate: "people", wait: "wait", tool_step: "check", subagent: "branch", late: "clock", compaction: "compact", mark: "alert",
};
const BAD = new Set(["failed", "error", "denied", "timed_out", "outcome_unknown", "rejected", "unanswered", "unknown_tool", "invalid"]);

export function Timeline({ trace, label }: { trace: TraceView; label: string }) {
  const t = useTexts();
  const [shown, setShown] = useState<number | null>(null);
  const end = trace.end || Math.max(trace.now, trace.start);
  const rows = useMemo(() => buildRows(trace.spans), [trace]);
  const scale = useMemo(() => buildScale(trace.spans, trace.start, Math.max(end, ...trace.spans.map((span) => span.end ?? 0))), [trace]);
  if (!rows.length) return <p class="muted">{trace.start ? t.empty : t.queued}</p>;
  return (
    <>
      <ol class="timeline" aria-label={label}>
        {rows.map((row) => <Row key={row.span.id} row={row} trace={trace} end={end} scale={scale} onRequest={setShown} />)}
      </ol>
      {scale.breaks.length > 0 && <p class="small muted key"><span class="swatch" aria-hidden="true" />{t.shortened(format.seconds(Math.max(...scale.breaks.map(({ seconds }) => seconds))))}</p>}
      {shown !== null && <SentRequest session={trace.session} turn={trace.turn} step={shown} onClose={() => setShown(null)} />}
    </>
  );
}

interface RowProps {
  row: TimelineRow;
  trace: TraceView;
  end: number;
  scale: Scale;
  onRequest: (step: number) => void;
}

function Row({ row: { span, depth }, trace, end, scale, onRequest }: RowProps) {
  const t = useTexts();
  const stop = span.end || end;
  const tokens = tokensOf(span.usage);
  const isMark = span.kind === "mark";
  return (
    <li class={`span ${span.kind}`} data-span={span.id}>
      <div class="what" style={{ paddingInlineStart: `${Math.min(depth, 6) * 1.1}rem` }}>
        <Icon name={ICONS[span.kind]} />
        <span class="name ellipsis" title={nameOf(span, t)}>{nameOf(span, t)}</span>
        <State span={span} isRunning={!span.end && !trace.end} />
      </div>
      <Bars span={span} stop={stop} scale={scale} />
      <span class="time" title={span.active_at && span.kind === "step" ? t.first(duration(span.active_at - span.start)) : undefined}>{isMark ? "" : duration(Math.max(0, stop - span.start))}</span>
      <span class="tokens">{tokens ? t.tokens(format.tokens(span.usage?.input ?? 0), format.tokens(span.usage?.output ?? 0)) : ""}</span>
      <span class="cost">{span.usage?.cost ? format.cost(span.usage.cost) : ""}</span>
      <span class="action">
        {span.kind === "step" && <Button little kind="quiet" icon="eye" aria-label={t.request(span.number ?? 0)} onClick={() => onRequest(span.number ?? 0)} />}
        {span.kind === "subagent" && span.session && span.turn && (
          <a class="button little quiet icon" aria-label={t.below} title={t.below} href={hrefFor({ page: "trace", session: span.session, turn: span.turn })}><Icon name="chart" /></a>
        )}
      </span>
      <Why span={span} />
    </li>
  );
}

function Why({ span }: { span: TraceSpan }) {
  const t = useTexts();
  const texts = [span.kind === "step" && span.text === "closing" ? t.closing : showControls(span.text ?? ""), span.by ? t.by(showControls(span.by)) : "", span.kind === "retry" && span.state ? t.instead(showControls(span.state)) : ""];
  if (span.cache) texts.push(t.cache(format.number(span.cache.missed), span.cache.cause.replaceAll(" ", "_")));
  const text = texts.filter(Boolean).join(" · ");
  return text ? <p class="why small muted" dir="auto">{text}</p> : null;
}

/** The bar of a span: of a step light until its first content, of a call light until its tool started. */
function Bars({ span, stop, scale }: { span: TraceSpan; stop: number; scale: Scale }) {
  const [from, to] = [scale.at(span.start), scale.at(stop)];
  const active = span.active_at ? scale.at(span.active_at) : span.kind === "call" || span.kind === "step" ? to : from;
  return (
    <span class="bars" aria-hidden="true">
      {scale.breaks.map(({ left, width }) => <span key={left} class="break" style={{ left: `${left}%`, width: `${width}%` }} />)}
      {span.kind === "mark" ? <span class="point" style={{ left: `${from}%` }} /> : (
        <>
          {active > from && <span class="bar before" style={{ left: `${from}%`, width: `${active - from}%` }} />}
          <span class={`bar ${span.end ? "" : "running"}`} style={{ left: `${active}%`, width: `${Math.max(0, to - active)}%` }} />
        </>
      )}
    </span>
  );
}

function State({ span, isRunning }: { span: TraceSpan; isRunning: boolean }) {
  const t = useTexts();
  if (isRunning) return <Badge tone="accent">{span.kind === "gate" || span.kind === "wait" ? t.waits : t.runs}</Badge>;
  const state = span.kind === "retry" ? "" : (span.state ?? "");
  if (!state || ["stop", "tool_calls", "completed", "allowed"].includes(state)) return null;
  const tone: Tone | undefined = BAD.has(state) ? "bad" : undefined;
  return <Badge tone={tone}>{state.replaceAll("_", " ")}</Badge>;
}

/** Short ones in milliseconds. */
const duration = (seconds: number) => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : format.seconds(seconds));

function nameOf(span: TraceSpan, t: ReturnType<typeof useTexts>): string {
  const name = showControls(span.name);
  switch (span.kind) {
    case "step":
      return t.step(span.number ?? 0, name);
    case "retry":
      return span.name === "rate" ? t.rate(span.number ?? 0) : t.retry(span.number ?? 0, name);
    case "call":
      return name || t.call;
    case "gate":
      return t.gate(span.name);
    case "wait":
      return span.name === "timer" ? t.timer : t.external;
    case "tool_step":
      return name;
    case "subagent":
      return t.subagent(span.number ?? 1);
    case "late":
      return t.late(name);
    case "compaction":
      return t.compaction;
    case "mark":
      return t.mark(span.name.replaceAll(" ", "_"));
  }
}
