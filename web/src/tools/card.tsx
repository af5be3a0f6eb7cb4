/** A call as a card: closed it says what runs and how it stands; open, everything there is to know. */
import { callsOf, isOver, ranFor, type CallNote, type FilePart, type GateState, type LivePart, type SessionFollower, type ToolPart, type TurnState } from "@everturn/client";
import { Component, type ComponentType } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { inbox } from "../app/app";
import { Boundary } from "../app/boundary";
import { lazy } from "../app/lazy";
import { useTopics } from "../app/store";
import { say } from "../app/words";
import { Media, isPicture } from "../conversation/media";
import { GateCard } from "../gates/gate";
import { plain } from "../gates/hidden";
import { isObject, parse } from "../gates/json";
import { Badge, Fold, Icon, Spinner } from "../ui/kit";
import { useExecutor } from "./executor";
import { LOOK, useCardWords } from "./states";
import "./card.css";

export interface CardProps {
  session: SessionFollower;
  turn: string;
  part?: ToolPart;
  live?: LivePart;
}

const Details = lazy(async () => (await import("./details")).Details);
const Below = lazy(async () => (await import("./below")).Below) as ComponentType<{ session: string; turn: string }>;

/** `part` once the step has ended; `live` while its arguments stream. The same call keeps its card. */
export class ToolCard extends Component<CardProps> {
  override shouldComponentUpdate(next: CardProps): boolean {
    const { session, turn, part } = this.props;
    return Boolean(next.live) || next.session !== session || next.turn !== turn || next.part !== part;
  }

  override render({ session, turn, part, live }: CardProps) {
    // What a call's tool has called stands in the card of that call.
    if (part?.parent && session.state.turns.get(turn)?.calls.has(part.parent)) return null;
    return <Boundary name="tool card" of={part ?? live}><Call session={session} turn={turn} part={part} live={live} /></Boundary>;
  }
}

/** What a card shows of a call beside its part: draws again when some of that has changed, not whenever the turn moves. */
function useCall(session: SessionFollower, turn: string, call: string): CallNote | undefined {
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    let before = sign(session.state.turns.get(turn), call);
    return session.subscribe(`turn:${turn}`, () => {
      const now = sign(session.state.turns.get(turn), call);
      if (now !== before) redraw((count) => count + 1);
      before = now;
    });
  }, [session, turn, call]);
  return session.state.turns.get(turn)?.calls.get(call);
}

function sign(turn: TurnState | undefined, id: string): string {
  const call = turn?.calls.get(id);
  if (!turn || !call) return "";
  const { state, tool, started, settled, isOut, late, below, progress, judged } = call;
  const gates = call.gates.map((gate) => (turn.gates.get(gate)?.verdict ? 1 : 0) + (turn.gates.get(gate)?.claim?.until ?? 0)).join();
  const made = callsOf(turn, id).length;
  return [state, tool, started, settled, isOut, late, below.length, progress.length, progress.at(-1), judged ? 1 : 0, gates, made, isOver(turn)].join("\n");
}

function Call({ session, turn: id, part, live }: CardProps) {
  const t = useCardWords();
  const name = part?.call ?? live?.call ?? "";
  const note = useCall(session, id, name);
  const turn = session.state.turns.get(id);
  const state = part ? (note?.state ?? part.state ?? "pending") : "writing";
  const shown = plain(note?.tool || part?.name || live?.name || "…");
  const executor = useExecutor(note?.tool || part?.name || "", part?.output?.origin, note?.effects, turn);
  // Settled for the turn, and its tool runs on: what the person sees is what the tool does.
  const said = note?.isOut ? "out" : state === "pending" && turn && isOver(turn) ? "never" : state;
  const isOn = said === "running" || said === "out";
  const [icon, tone] = LOOK[said];
  const gates = (note?.gates ?? []).map((gate) => turn?.gates.get(gate)).filter((gate): gate is GateState => gate !== undefined);
  const made = turn ? callsOf(turn, name) : [];
  const brief = part?.output?.title || briefOf(part?.arguments || "", part?.used);
  return (
    <article class={`tool-card ${state}`} data-call={name} data-state={state} aria-label={`${shown}: ${t[said]}`}>
      <Fold class="call" summary={
        <>
          <Icon name={executor.icon} />
          <span class="name">{shown}</span>
          <span class="grow ellipsis muted small" dir="auto">{plain(brief)}</span>
          <Badge tone={tone} icon={isOn ? undefined : icon}>{isOn && <Spinner />}{t[said]}</Badge>
          {note && turn && <Duration turn={turn} note={note} isOn={isOn} />}
        </>
      }>
        {part && <Details session={session} turn={id} part={part} />}
        {!part && live && <pre class="exact live">{live.text}</pre>}
      </Fold>
      {!part && live && live.text && <p class="small muted ellipsis tail">{plain(live.text.slice(-120))}</p>}
      {part && <Said part={part} note={note} isDenied={gates.some(({ verdict }) => verdict && !verdict.allowed)} />}
      {part && <Pictures session={session.id} files={[...(part.output?.attachments ?? []), ...(part.late?.attachments ?? [])]} />}
      {gates.map((gate) => <GateCard key={gate.gate.id} session={session.id} asked={gate} />)}
      {note && note.below.length > 0 && <Beneath session={session} note={note} />}
      {made.length > 0 && <Made session={session} turn={id} calls={made} />}
    </article>
  );
}

/** What must be said of a call even where nobody opens it. */
function Said({ part, note, isDenied }: { part: ToolPart; note: CallNote | undefined; isDenied: boolean }) {
  const t = useCardWords();
  const state = note?.state ?? part.state ?? "pending";
  const lines: string[] = [];
  if (note?.tool && note.tool !== part.name) lines.push(t.repaired(plain(part.name), plain(note.tool)));
  if (part.is_edited) lines.push(t.edited);
  if (state === "outcome_unknown") lines.push(t.unknownWhy);
  if (state === "withheld") lines.push(t.withheldWhy);
  if (state === "waiting" && !note?.below.length) lines.push(t.waitingWhy);
  if (note?.isOut) lines.push(t.cancelledOut);
  if (state === "running" && note?.progress.length) lines.push(plain(note.progress.at(-1)!));
  // Who denied it, and why, stands at the gate below.
  if ((state === "failed" || (state === "denied" && !isDenied)) && part.output) lines.push(/^\{"status":"incomplete",/.test(part.output.text) ? t.incomplete : plain(firstLine(part.output.text)));
  if (part.late) lines.push(`${t.late}: ${plain(firstLine(part.late.title || part.late.text))}`);
  return lines.length ? <div class="said small">{lines.map((line) => <p key={line} dir="auto">{line}</p>)}</div> : null;
}

/** What a tool has drawn, or found, is seen without a click. */
function Pictures({ session, files }: { session: string; files: readonly FilePart[] }) {
  const shown = files.filter(isPicture);
  return shown.length ? <div class="files">{shown.map((file) => <Media key={file.blob} session={session} part={file} />)}</div> : null;
}

/** The questions of sub-turns, and the sub-turns themselves when somebody opens them. */
function Beneath({ session, note }: { session: SessionFollower; note: CallNote }) {
  const t = useCardWords();
  useTopics(inbox, "gates");
  const below = new Set(note.below.map((one) => one.session));
  const asked = inbox.gates.filter((one) => below.has(one.session));
  return (
    <div class="beneath">
      {asked.map((one) => (
        <GateCard key={one.gate.id} session={session.id} asked={{ gate: one.gate, opened: one.opened, claim: one.claim, verdict: null, answered: 0, grant: null }} />
      ))}
      {note.below.map((one, at) => (
        <Fold key={one.turn} summary={<span class="small"><Icon name="branch" /> {t.below}{note.below.length > 1 ? ` ${at + 1}` : ""}: {t.belowOpen}</span>}>
          <Below session={one.session} turn={one.turn} />
        </Fold>
      ))}
    </div>
  );
}

function Made({ session, turn, calls }: { session: SessionFollower; turn: string; calls: readonly CallNote[] }) {
  const t = useCardWords();
  const message = session.state.messages.get(calls[0]!.message);
  useTopics(session, `message:${calls[0]!.message}`);
  const find = (id: string) => message?.parts?.find((part): part is ToolPart => part.type === "tool" && part.call === id);
  return (
    <Fold class="made" open={calls.length < 6} summary={<span class="small">{t.nested} ({calls.length})</span>}>
      {calls.map((call) => <Boundary key={call.id} name="tool card" of={find(call.id)}><Call session={session} turn={turn} part={find(call.id)} /></Boundary>)}
    </Fold>
  );
}

/** How long its tool ran, or has run so far. */
function Duration({ turn, note, isOn }: { turn: TurnState; note: CallNote; isOn: boolean }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => tick((count) => count + 1), 500);
    return () => clearInterval(timer);
  }, [isOn]);
  if (!note.started || (!note.settled && !isOn && note.state !== "reviewing")) return null;
  return <span class="duration small muted">{say.seconds(ranFor(turn, note, Date.now() / 1000))}</span>;
}

/** A word or two of the arguments: the first text among them as they were asked for, with what was used for it in the end. */
export function briefOf(text: string, used?: string | null): string {
  const [asked, now] = [parse(text), parse(used || text)];
  if (!isObject(now)) return "";
  const order = isObject(asked) ? [...Object.keys(asked), ...Object.keys(now)] : Object.keys(now);
  const first = order.map((key) => (Object.hasOwn(now, key) ? now[key] : "")).find((one): one is string => typeof one === "string" && one.trim() !== "");
  return first ? firstLine(first).slice(0, 120) : "";
}

const firstLine = (text: string) => text.trim().split("\n", 1)[0]!.slice(0, 300);
