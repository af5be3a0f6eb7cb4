/** Trace page: what a turn did and when, or two turns beside each other. */
import { useEffect } from "preact/hooks";
import { textOf, type SessionState, type TraceView } from "@everturn/client";
import { client, getSessionFollower } from "../app/app";
import { hrefFor, navigate } from "../app/route";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { sessionTitle } from "../app/titles";
import { showControls } from "../conversation/textEscapes";
import { useFetch, useInterval } from "../app/useFetch";
import { CopyButton, ErrorLine, Field, Icon, Spinner } from "../ui/components";
import { MEASURES, measuresOf, type Measure } from "./timeline";
import { Timeline } from "./traceView";
import "./trace.css";
import { useTexts } from "../locales/tracePage.gen";

interface Props {
  session: string;
  turn: string;
  other?: string;
}

export function TracePage({ session: id, turn, other }: Props) {
  const t = useTexts();
  const session = getSessionFollower(id);
  useTopics(session, "tree", "connection");
  useEffect(() => {
    session.start();
    return () => session.pause();
  }, [session]);
  const left = useTrace(id, turn);
  const right = useTrace(id, other);
  const message = left.value?.answer || undefined;
  return (
    <div class={`page trace ${other ? "two" : ""}`}>
      <div class="inner">
        <div class="row wrap">
          <div class="grow">
            <h1>{other ? t.two : t.title}</h1>
            <p class="small muted ellipsis" dir="auto">{sessionTitle(id, session.state.title)}</p>
          </div>
          <a class="button little" href={hrefFor({ page: "session", session: id, message })}>{t.back}</a>
        </div>
        {(left.problem ?? right.problem) && <ErrorLine>{left.problem ?? right.problem}</ErrorLine>}
        {!left.value && !left.problem && <Spinner label={t.loading} />}
        {left.value && <Picker state={session.state} id={id} turn={turn} other={other} />}
        {left.value && <Numbers left={left.value} right={right.value} />}
        {left.value?.problem && <ErrorLine><strong>{showControls(left.value.problem.kind)}</strong> {showControls(left.value.problem.text)}</ErrorLine>}
        {left.value && (
          <section class="card side">
            {other && <h2>{t.left}</h2>}
            <Timeline trace={left.value} label={t.timeline} />
          </section>
        )}
        {right.value && (
          <section class="card side">
            <h2>{t.right}</h2>
            {right.value.problem && <ErrorLine><strong>{showControls(right.value.problem.kind)}</strong> {showControls(right.value.problem.text)}</ErrorLine>}
            <Timeline trace={right.value} label={t.right} />
          </section>
        )}
        {left.value?.trace_id && (
          <p class="small muted row wrap">{t.exported} <code>{left.value.trace_id}</code><CopyButton text={left.value.trace_id} label={t.copy} done={t.copied} /></p>
        )}
      </div>
    </div>
  );
}

const AGAIN = 1; // seconds between two requests while the turn runs

function useTrace(session: string, turn: string | undefined): { value?: TraceView; problem?: string } {
  const { value, problem, reload } = useFetch<TraceView | undefined>(() => (turn ? client.trace(session, turn) : Promise.resolve(undefined)), session, turn);
  const isRunning = value !== undefined && !value.end && !["completed", "error", "cancelled"].includes(value.phase);
  useInterval(isRunning ? AGAIN : 0, reload);
  return { value: value?.turn === turn ? value : undefined, problem: value ? undefined : problem };
}

/** Chooses the turn that this one is compared with: any of the conversation, also of other branches. */
function Picker({ state, id, turn, other = "" }: { state: SessionState; id: string; turn: string; other?: string }) {
  const t = useTexts();
  const turns = [...state.turns.values()].filter((candidate) => candidate.started && candidate.id !== turn);
  if (!turns.length && !other) return null;
  const label = (candidate: { id: string; started: number; input: string | null; parent: string | null }) => {
    const message = state.messages.get(candidate.input ?? candidate.parent ?? "");
    const text = message ? textOf(message.parts).slice(0, 60) : candidate.id;
    return `${format.time(candidate.started)} · ${showControls(text)}`;
  };
  return (
    <div class="row wrap picker">
      <Field label={t.compare}>
        <select class="input" value={other} onChange={(event) => navigate({ page: "trace", session: id, turn, other: event.currentTarget.value || undefined })}>
          <option value="" selected={!other}>{t.none}</option>
          {turns.map((candidate) => <option key={candidate.id} value={candidate.id} selected={candidate.id === other}>{label(candidate)}</option>)}
        </select>
      </Field>
      {other && <a class="button little quiet" href={hrefFor({ page: "trace", session: id, turn: other, other: turn })}><Icon name="compare" />{t.swap}</a>}
    </div>
  );
}

/** The numbers of one turn, or of two with their difference. */
function Numbers({ left, right }: { left: TraceView; right?: TraceView }) {
  const t = useTexts();
  const a = measuresOf(left);
  const b = right && measuresOf(right);
  const shown = MEASURES.filter((measure) => a[measure] || b?.[measure]);
  if (!b) {
    return (
      <dl class="numbers">
        <div><dt>{t.state}</dt><dd>{t.phase(left.phase)}</dd></div>
        {left.model && <div><dt>{t.model}</dt><dd class="ellipsis" title={left.model}>{showControls(left.model)}</dd></div>}
        {shown.map((measure) => <div key={measure}><dt>{t[measure]}</dt><dd>{show(measure, a[measure])}</dd></div>)}
      </dl>
    );
  }
  return (
    <div class="card scroll" tabIndex={0} role="region" aria-label={t.two}>
      <table class="numbers-table">
        <thead><tr><td /><th scope="col">{t.left}</th><th scope="col">{t.right}</th><th scope="col">{t.difference}</th></tr></thead>
        <tbody>
          <tr><th scope="row">{t.state}</th><td>{t.phase(left.phase)}</td><td>{t.phase(right.phase)}</td><td /></tr>
          <tr><th scope="row">{t.model}</th><td>{showControls(left.model)}</td><td>{showControls(right.model)}</td><td /></tr>
          {shown.map((measure) => (
            <tr key={measure}>
              <th scope="row">{t[measure]}</th><td>{show(measure, a[measure])}</td><td>{show(measure, b[measure])}</td>
              <td>{difference(measure, a[measure], b[measure])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const SECONDS: ReadonlySet<Measure> = new Set(["seconds", "active", "waiting", "first"]);

/** With its sign; nothing if it is too small to be shown. */
function difference(measure: Measure, from: number, to: number): string {
  const text = show(measure, Math.abs(to - from));
  return to === from || text.startsWith("<") ? "" : `${to > from ? "+" : "−"}${text}`;
}

function show(measure: Measure, value: number): string {
  if (SECONDS.has(measure)) return format.seconds(value);
  return measure === "cost" ? format.cost(value) : ["input", "output", "cached"].includes(measure) ? format.tokens(value) : format.number(value);
}
