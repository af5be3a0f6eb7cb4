/** Tool card: collapsed it shows the tool and its state; open, all details of the call. */
import { nestedCalls, isOver, runSeconds, type CallRecord, type FilePart, type GateState, type LivePart, type SessionFollower, type ToolPart, type TurnState } from "@everturn/client";
import { Component } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { inbox } from "../app/app";
import { ErrorBoundary } from "../app/errorBoundary";
import { lazy } from "../app/lazy";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { Media, isImage } from "../conversation/media";
import { GateCard } from "../gates/gateCard";
import { escapeInvisible } from "../gates/invisibleChars";
import { isObject, parseJson } from "../gates/json";
import { Badge, Disclosure, Icon, Spinner } from "../ui/components";
import { useExecutor } from "./executor";
import { readTodos } from "./readTodos";
import { STATE_STYLE, useCardTexts } from "./states";
import "./card.css";

export interface CardProps {
  session: SessionFollower;
  turn: string;
  part?: ToolPart;
  live?: LivePart;
}

const Details = lazy(async () => (await import("./details")).Details);
const TodoList = lazy(async () => (await import("./todos")).TodoList);
const Subagent = lazy(async () => (await import("./subagent")).Subagent);

/** `part` once the step has ended; `live` while its arguments stream. The same call keeps its card. */
export class ToolCard extends Component<CardProps> {
  override shouldComponentUpdate(next: CardProps): boolean {
    const { session, turn, part } = this.props;
    return Boolean(next.live) || next.session !== session || next.turn !== turn || next.part !== part;
  }

  override render({ session, turn, part, live }: CardProps) {
    // A nested call is drawn in the card of its parent call.
    if (part?.parent && session.state.turns.get(turn)?.calls.has(part.parent)) return null;
    return <ErrorBoundary name="tool card" resetKey={part ?? live}><Call session={session} turn={turn} part={part} live={live} /></ErrorBoundary>;
  }
}

/** State of a call beside its part: renders again when it has changed, not on every change of the turn. */
function useCall(session: SessionFollower, turn: string, call: string): CallRecord | undefined {
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    let before = callFingerprint(session.state.turns.get(turn), call);
    return session.subscribe(`turn:${turn}`, () => {
      const now = callFingerprint(session.state.turns.get(turn), call);
      if (now !== before) redraw((count) => count + 1);
      before = now;
    });
  }, [session, turn, call]);
  return session.state.turns.get(turn)?.calls.get(call);
}

function callFingerprint(turn: TurnState | undefined, id: string): string {
  const call = turn?.calls.get(id);
  if (!turn || !call) return "";
  const { state, tool, started, finished, isStillRunning, late, children, progress, decision } = call;
  const gates = call.gates.map((gate) => (turn.gates.get(gate)?.resolution ? 1 : 0) + (turn.gates.get(gate)?.claim?.until ?? 0)).join();
  const nestedCount = nestedCalls(turn, id).length;
  return [state, tool, started, finished, isStillRunning, late, children.length, progress.length, progress.at(-1), decision ? 1 : 0, gates, nestedCount, isOver(turn)].join("\n");
}

function Call({ session, turn: id, part, live }: CardProps) {
  const t = useCardTexts();
  const name = part?.call ?? live?.call ?? "";
  const note = useCall(session, id, name);
  const turn = session.state.turns.get(id);
  const state = part ? (note?.state ?? part.state ?? "pending") : "writing";
  const shown = escapeInvisible(note?.tool || part?.name || live?.name || "…");
  const executor = useExecutor(note?.tool || part?.name || "", part?.output?.origin, note, turn);
  // Finished for the turn while its tool still runs: show what the tool does.
  const shownState = note?.isStillRunning ? "still_running" : state === "pending" && turn && isOver(turn) ? "never" : state;
  const isRunning = shownState === "running" || shownState === "still_running";
  // A program that failed is a call that succeeded: its badge says so.
  const exit = state === "completed" ? part?.output?.metadata?.exit : 0;
  const [icon, tone] = STATE_STYLE[exit ? "outcome_unknown" : shownState];
  const label = exit ? t.exited(String(exit)) : t[shownState];
  const gates = (note?.gates ?? []).map((gate) => turn?.gates.get(gate)).filter((gate): gate is GateState => gate !== undefined);
  const nested = turn ? nestedCalls(turn, name) : [];
  const todos = part && ["pending", "running", "completed"].includes(state) ? readTodos(part.name, part.used || part.arguments) : null;
  const brief = part?.output?.title || argumentSummary(part?.arguments || "", part?.used);
  return (
    <article class={`tool-card ${state}`} data-call={name} data-state={state} aria-label={`${shown}: ${label}`}>
      <Disclosure class="call" summary={
        <>
          <Icon name={executor.icon} />
          <span class="name">{shown}</span>
          <span class="grow ellipsis muted small" dir="auto">{escapeInvisible(brief)}</span>
          <Badge tone={tone} icon={isRunning ? undefined : icon}>{isRunning && <Spinner />}{label}</Badge>
          {note && turn && <Duration turn={turn} note={note} isOn={isRunning} />}
        </>
      }>
        {part && <Details session={session} turn={id} part={part} />}
        {!part && live && <pre class="visible-text live">{live.text}</pre>}
      </Disclosure>
      {!part && live && live.text && <p class="small muted ellipsis tail">{escapeInvisible(live.text.slice(-120))}</p>}
      {todos && <TodoList todos={todos} />}
      {part && <CallSummary part={part} note={note} isDenied={gates.some(({ resolution }) => resolution && !resolution.allowed)} isAsking={nested.length > 0 || gates.some(({ resolution }) => !resolution)} />}
      {part && <Images session={session.id} files={[...(part.output?.attachments ?? []), ...(part.late?.attachments ?? [])]} />}
      {gates.map((gate) => <GateCard key={gate.gate.id} session={session.id} gateState={gate} isInCard />)}
      {note && note.children.length > 0 && <Subagents session={session} note={note} />}
      {nested.length > 0 && <NestedCalls session={session} turn={id} calls={nested} />}
    </article>
  );
}

/** What must be shown of a call even while its card is collapsed. */
function CallSummary({ part, note, isDenied, isAsking }: { part: ToolPart; note: CallRecord | undefined; isDenied: boolean; isAsking: boolean }) {
  const t = useCardTexts();
  const state = note?.state ?? part.state ?? "pending";
  const lines: string[] = [];
  if (note?.tool && note.tool !== part.name) lines.push(t.repaired(escapeInvisible(part.name), escapeInvisible(note.tool)));
  if (part.is_edited) lines.push(t.edited);
  if (state === "outcome_unknown") lines.push(t.unknownWhy);
  if (state === "withheld") lines.push(t.withheldWhy);
  if (state === "waiting" && !note?.children.length && !isAsking) lines.push(note?.waitsFor ? t.waitingFor(escapeInvisible(note.waitsFor)) : t.waitingWhy);
  if (note?.isStillRunning) lines.push(t.stillRunningWhy);
  if (state === "running" && note?.progress.length) lines.push(escapeInvisible(note.progress.at(-1)!));
  // Who denied it, and why, is shown at the gate below.
  if ((state === "failed" || (state === "denied" && !isDenied)) && part.output) lines.push(/^\{"status":"incomplete",/.test(part.output.text) ? t.incomplete : escapeInvisible(firstLine(part.output.text)));
  if (part.late) lines.push(`${t.late}: ${escapeInvisible(firstLine(part.late.title || part.late.text))}`);
  return lines.length ? <div class="call-summary small">{lines.map((line) => <p key={line} dir="auto">{line}</p>)}</div> : null;
}

/** Images of a result are shown without a click. */
function Images({ session, files }: { session: string; files: readonly FilePart[] }) {
  const shown = files.filter(isImage);
  return shown.length ? <div class="files">{shown.map((file) => <Media key={file.blob} session={session} part={file} />)}</div> : null;
}

/** The gates of sub-agents, and the sub-agents themselves when expanded. */
function Subagents({ session, note }: { session: SessionFollower; note: CallRecord }) {
  const t = useCardTexts();
  useTopics(inbox, "gates");
  const childSessions = new Set(note.children.map((child) => child.session));
  const gates = inbox.gates.filter((gateView) => childSessions.has(gateView.session));
  return (
    <div class="subagents">
      {gates.map((gateView) => (
        <GateCard key={gateView.gate.id} session={session.id} gateState={{ gate: gateView.gate, opened: gateView.opened, claim: gateView.claim, resolution: null, answered: 0, grant: null }} />
      ))}
      {note.children.map((child, index) => (
        <Disclosure key={child.turn} summary={<span class="small"><Icon name="branch" /> {t.subagentOpen}{note.children.length > 1 ? ` ${index + 1}` : ""}</span>}>
          <Subagent session={child.session} turn={child.turn} Card={ToolCard} />
        </Disclosure>
      ))}
    </div>
  );
}

function NestedCalls({ session, turn, calls }: { session: SessionFollower; turn: string; calls: readonly CallRecord[] }) {
  const t = useCardTexts();
  const message = session.state.messages.get(calls[0]!.message);
  useTopics(session, `message:${calls[0]!.message}`);
  const find = (id: string) => message?.parts?.find((part): part is ToolPart => part.type === "tool" && part.call === id);
  return (
    <Disclosure class="nested-calls" open={calls.length < 6} summary={<span class="small">{t.nested} ({calls.length})</span>}>
      {calls.map((call) => <ErrorBoundary key={call.id} name="tool card" resetKey={find(call.id)}><Call session={session} turn={turn} part={find(call.id)} /></ErrorBoundary>)}
    </Disclosure>
  );
}

/** How long its tool ran, or has run so far. */
function Duration({ turn, note, isOn }: { turn: TurnState; note: CallRecord; isOn: boolean }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => tick((count) => count + 1), 500);
    return () => clearInterval(timer);
  }, [isOn]);
  if (!note.started || (!note.finished && !isOn && note.state !== "reviewing")) return null;
  return <span class="duration small muted">{format.seconds(runSeconds(turn, note, Date.now() / 1000))}</span>;
}

/** Summary of the arguments: the first text among them in the requested order, with the value that was used. */
export function argumentSummary(text: string, used?: string | null): string {
  const [original, now] = [parseJson(text), parseJson(used || text)];
  if (!isObject(now)) return "";
  const order = isObject(original) ? [...Object.keys(original), ...Object.keys(now)] : Object.keys(now);
  const first = order.map((key) => (Object.hasOwn(now, key) ? now[key] : "")).find((value): value is string => typeof value === "string" && value.trim() !== "");
  return first ? firstLine(first).slice(0, 120) : "";
}

const firstLine = (text: string) => text.trim().split("\n", 1)[0]!.slice(0, 300);
