/** Turn footer: the status of a running turn, or how it ended. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isOver, openGates, type RequestRetried, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client, inbox, mayWrite } from "../app/app";
import { hrefFor } from "../app/route";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { GateBatch, GateCard } from "../gates/gateCard";
import { parseJson } from "../gates/json";
import { Button, Icon, Spinner, type IconName } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/turnFooter.gen";

interface Props {
  session: SessionFollower;
  id: string;
}

/** Shown under the last message of a turn. */
export function TurnFooter({ session, id }: Props) {
  useTopics(session, `turn:${id}`, `live:${id}`);
  const turn = session.state.turns.get(id);
  if (!turn) return null;
  const gates = [...turn.gates.values()].filter(({ gate }) => !gate.call || !turn.calls.has(gate.call));
  return (
    <>
      {gates.map((gateState) => <GateCard key={gateState.gate.id} session={session.id} gateState={gateState} />)}
      {turn.gates.size > 1 && <GateBatch items={openGates(turn).map(({ gate }) => ({ session: session.id, gate }))} hasDensity />}
      {isOver(turn) ? <TurnEnd session={session} turn={turn} /> : <TurnStatus session={session} turn={turn} />}
    </>
  );
}

/** What the turn is doing, and for how long. */
function TurnStatus({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  const now = useNow();
  const status = useTurnStatus(turn, now);
  const since = turn.started ? Math.max(0, now - turn.started) : 0;
  return (
    <>
      <CompactionProblem turn={turn} />
      <p class={`turn-status ${status.isWaiting ? "waiting" : ""}`} role="status">
        {status.isWaiting ? <Icon name="wait" /> : <Spinner />}
        <span>{status.text}</span>
        <span class="muted" aria-hidden="true">{since >= 1 ? format.seconds(Math.floor(since)).replace(/\.0 /, " ") : ""}</span>
        <TraceLink session={session} turn={turn} />
        {turn.compaction && mayWrite(session.id) && <Button little title={t.cancelTitle} onClick={() => void attempt(client.cancel(session.id, turn.id))}>{t.cancel}</Button>}
      </p>
    </>
  );
}

function useTurnStatus(turn: TurnState, now: number): { text: string; isWaiting: boolean } {
  const t = useTexts();
  const gates = openGates(turn);
  const running = [...turn.calls.values()].filter((call) => call.state === "running" && !call.parent).length;
  useTopics(inbox, "gates");
  const childSessions = [...turn.calls.values()].flatMap((call) => call.children.map((child) => child.session));
  const childGates = inbox.gates.filter(({ session }) => childSessions.some((child) => session === child || session.startsWith(`${child}-`)));
  const personGates = [...gates, ...childGates].filter(({ gate }) => gate.kind !== "client");
  const step = turn.steps.at(-1);
  if (turn.phase === "finalizing") return { text: t.finalizing, isWaiting: false };
  if (personGates.length) return { text: running ? `${t.asks(personGates.length)} · ${t.running(running)}` : t.asks(personGates.length), isWaiting: true };
  if (gates.length || childGates.length) return { text: t.client, isWaiting: true };
  if (running) return { text: t.running(running), isWaiting: false };
  if (turn.compaction) return { text: t.compacting(format.tokens(turn.compaction.used ?? 0)), isWaiting: false };
  if (turn.phase === "waiting") return { text: t.suspended, isWaiting: true };
  if (turn.phase === "preparing" || turn.phase === "idle") return { text: t.preparing, isWaiting: false };
  if (step && !step.ended) {
    const live = turn.live.at(-1);
    const retry = step.retries.at(-1);
    if (!live && turn.wait) return { text: turn.wait[0]!.toUpperCase() + showControls(turn.wait.slice(1)), isWaiting: false };
    if (!live && retry) return { text: describeRetry(retry, now, t), isWaiting: false };
    if (!live) return { text: step.restarts ? t.restarted : t.thinking, isWaiting: false };
    return { text: live.kind === "text" ? t.writing : live.kind === "call" ? t.calling : t.thinking, isWaiting: false };
  }
  return { text: t.deciding, isWaiting: false };
}

/** The retry of a model request: how long it still waits, and why. */
function describeRetry(retry: RequestRetried, now: number, t: ReturnType<typeof useTexts>): string {
  const reason = showControls(retry.problem.text);
  if (retry.model) return t.fallback(showControls(retry.model), reason);
  const left = (retry.at ?? 0) + (retry.seconds ?? 0) - now;
  if (left < 1) return t.retrying(retry.attempt, retry.attempts, reason);
  return t.retryingIn(format.seconds(Math.ceil(left)).replace(/\.0 /, " "), retry.attempt, retry.attempts, reason);
}

function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function TurnEnd({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  const calls = [...turn.calls.values()];
  const stillRunning = calls.filter((call) => call.isStillRunning).length;
  const late = calls.filter((call) => call.late).length;
  const isLoop = [...turn.gates.values()].some(({ gate, resolution }) => gate.kind === "loop" && resolution && !resolution.allowed);
  const isLast = turn.steps.at(-1)?.closing && !turn.limit;
  const scope = turn.limit && t[turn.limit.scope];
  return (
    <div class="turn-end">
      <CompactionProblem turn={turn} />
      {turn.phase === "completed" && isCompactionTurn(turn) && turn.tip === turn.parent && <StatusLine icon="compact" tone="quiet">{t.nothing}</StatusLine>}
      {turn.limit && <StatusLine icon="chart" tone="warn" title={turn.limit.limit === "denied" ? t.denied : t.limit(scope!)} action={<TraceLink session={session} turn={turn} />}>{showControls(turn.limit.text)}</StatusLine>}
      {isLast && <StatusLine icon="chart" tone="warn">{t.steps(stepLimit(turn))}</StatusLine>}
      {isLoop && <StatusLine icon="redo" tone="warn">{t.loop}</StatusLine>}
      {turn.phase === "cancelled" && <StatusLine icon="stop" tone="quiet" action={<TraceLink session={session} turn={turn} />}>{turn.ending?.hard ? t.hard : t.cancelled}</StatusLine>}
      {turn.phase === "error" && <TurnError session={session} turn={turn} />}
      {stillRunning > 0 && <StatusLine icon="wait" tone="quiet" isBusy>{t.stillRunning(stillRunning)}</StatusLine>}
      {late > 0 && <StatusLine icon="clock" tone="quiet">{t.late(late)}</StatusLine>}
      {turn.reports.map((report, index) => <StatusLine key={index} icon="plug" tone="warn" title={t.reports}>{showControls(report.text)}</StatusLine>)}
    </div>
  );
}

function TraceLink({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  return <a class="button little quiet" href={hrefFor({ page: "trace", session: session.id, turn: turn.id })}><Icon name="chart" />{t.trace}</a>;
}

/** Whether a turn only compacts the conversation: `/compact`. */
export function isCompactionTurn(turn: TurnState): boolean {
  return turn.options.compact != null;
}

/** Why a summary could not be written. The turn goes on without it; if it was for nothing else, it has failed, and says why itself. */
function CompactionProblem({ turn }: { turn: TurnState }) {
  const t = useTexts();
  if (!turn.compactionProblem || isCompactionTurn(turn)) return null;
  return <StatusLine icon="compact" tone="warn" title={t.notCompacted}>{showControls(turn.compactionProblem.text)}</StatusLine>;
}

/** The step limit that counts at the end of a turn: people may have raised it. */
function stepLimit(turn: TurnState): number {
  const raised = [...turn.gates.values()].filter(({ gate, resolution }) => gate.kind === "limit" && resolution?.allowed);
  const limits = raised.map(({ gate }) => (parseJson(gate.arguments) as { max_steps?: number } | null)?.max_steps ?? 0);
  return Math.max(turn.options.max_steps ?? turn.steps.length - 1, ...limits);
}

function TurnError({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  const from = turn.input ?? turn.parent;
  const [isRetrying, setRetrying] = useState(false);
  const retry = async () => {
    setRetrying(true);
    await attempt(isCompactionTurn(turn) ? client.compact(session.id, { focus: turn.options.compact! }) : client.rerun(session.id, from!, { at_step_limit: "ask" }));
    setRetrying(false);
  };
  return (
    <StatusLine icon="alert" tone="bad" title={isCompactionTurn(turn) ? t.notCompacted : errorTitle(turn.problem?.kind ?? "", t)} code={isCompactionTurn(turn) ? undefined : turn.problem?.kind}
      action={<><TraceLink session={session} turn={turn} />{from && mayWrite(session.id) && <Button little icon="redo" disabled={isRetrying} onClick={() => void retry()}>{t.again}</Button>}</>}>
      {showControls(turn.problem?.text ?? "")}
    </StatusLine>
  );
}

const KINDS = ["deadline", "request", "key", "quota", "context", "unknown_model", "rate", "server", "truncated"] as const;

function errorTitle(kind: string, t: ReturnType<typeof useTexts>): string {
  const known = KINDS.find((candidate) => candidate === kind);
  return known ? t[known] : t.failed;
}

export function StatusLine({ icon, tone, title, code, action, isBusy = false, children }: {
  icon: IconName; tone: "quiet" | "warn" | "bad"; title?: string; code?: string; isBusy?: boolean; action?: ComponentChildren; children: ComponentChildren;
}) {
  return (
    <div class={`end-line ${tone}`}>
      {isBusy ? <Spinner /> : <Icon name={icon} />}
      <div class="grow">
        {title && <strong>{title}{code && <code>{code}</code>}</strong>}
        <span dir="auto">{children}</span>
      </div>
      {action}
    </div>
  );
}
