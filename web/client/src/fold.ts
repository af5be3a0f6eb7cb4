/** The log → a session, event by event: what `everturn.core` does with `Tree` and `TurnState`, for a page that draws it.
 *
 * Every event has its case, and the compiler says so: one that is new to the server does not build here until it is read.
 */
import { isSameValue } from "./json.js";
import type { CallNote, LivePart, SessionState, TurnState } from "./state.js";
import {
  TRANSITIONS, type CallProgress, type CallSettled, type FileChange, type FilesChanged, type GateAnswered, type GateOpened,
  type LogEvent, type Message, type Part, type StepFinished, type StepInterrupted, type StreamDelta, type ToolPart, type Usage,
} from "./types.gen.js";
import type { Topic } from "./session.js";

type Touch = (topic: Topic) => void;

export function emptySession(): SessionState {
  return {
    seq: 0, title: "", leaf: null, messages: new Map(), children: new Map(), deleted: new Set(), writing: new Map(),
    calls: new Map(), turns: new Map(), gates: new Map(), reverts: [], revoked: new Set(),
  };
}

/** A whole log at once. */
export function fold(entries: Iterable<{ readonly seq: number; readonly event: LogEvent }>): SessionState {
  const state = emptySession();
  for (const { seq, event } of entries) apply(state, seq, event, () => {});
  return state;
}

/** Take one event in, and say what it changed. One that was taken in before changes nothing. */
export function apply(state: SessionState, seq: number, event: LogEvent, touch: Touch): void {
  if (seq && seq <= state.seq) return;
  if (seq) state.seq = seq;
  if ("turn" in event) {
    const turn = turnOf(state, event.turn);
    turn.phase = TRANSITIONS[turn.phase][event.type] ?? turn.phase;
    touch(`turn:${event.turn}`);
  }
  take(state, event, touch);
}

function take(state: SessionState, event: LogEvent, touch: Touch): void {
  switch (event.type) {
    case "TurnStarted": {
      const turn = turnOf(state, event.turn);
      Object.assign(turn, { options: event.options ?? {}, started: event.at ?? 0, parent: event.parent ?? null });
      turn.tip = turn.parent;
      if (event.input) {
        add(state, event.input, touch);
        turn.input = turn.tip = event.input.id;
      }
      state.leaf = event.input ? event.input.id : (event.parent ?? null);
      return touch("tree");
    }
    case "AnswerOpened": {
      const turn = turnOf(state, event.turn);
      turn.answer = turn.tip = event.message.id;
      state.writing.set(event.turn, event.message.id);
      return join(state, event.message, touch);
    }
    case "MessageAdded":
      turnOf(state, event.turn).tip = event.message.id;
      return join(state, event.message, touch);
    case "StepStarted": {
      const turn = turnOf(state, event.turn);
      const fresh = { restarts: 0, ended: 0, finish: null, problem: null, usage: {} };
      turn.steps.push({ number: event.step, closing: event.closing ?? false, started: event.at ?? 0, ...fresh });
      turn.live = [];
      return touch(`live:${event.turn}`);
    }
    case "StepRestarted": {
      const turn = turnOf(state, event.turn);
      turn.steps.at(-1)!.restarts += 1;
      turn.live = [];
      return touch(`live:${event.turn}`);
    }
    case "StepFinished":
    case "StepInterrupted":
      return endStep(state, event, touch);
    case "GateOpened":
      return openGate(state, event, touch);
    case "GateAnswered":
      return answerGate(state, event, touch);
    case "GateClaimed": {
      const asked = turnOf(state, event.turn).gates.get(event.gate);
      if (asked) asked.claim = event.claim;
      return;
    }
    case "CallMade": {
      const at = state.calls.get(event.parent);
      if (!at) return;
      const turn = turnOf(state, event.turn);
      const { call, name, arguments: args, identity, parent } = event;
      state.calls.set(call, at);
      turn.calls.set(call, note(call, name, at, turn.calls.get(parent)?.step ?? turn.steps.length, parent));
      return change(state, at, touch, (message) => withPart(message, { type: "tool", call, name, arguments: args, identity, parent }));
    }
    case "CallJudged": {
      const call = turnOf(state, event.turn).calls.get(event.call);
      if (call) Object.assign(call, { judged: event, tool: event.tool });
      return;
    }
    case "LimitReached":
      turnOf(state, event.turn).limit = event;
      return;
    case "CallStarted":
      return moveCall(state, event, touch, (call) => {
        Object.assign(call, { state: "running", started: event.at ?? 0, tool: event.tool, effects: event.effects });
        return (part) => ({ ...part, state: "running", used: isSameValue(event.arguments, part.arguments) ? "" : event.arguments });
      });
    case "CallBelow":
      turnOf(state, event.turn).calls.get(event.call)?.below.push({ session: event.session, turn: event.below });
      return;
    case "CallPaused":
      return moveCall(state, event, touch, (call) => {
        call.state = "waiting";
        return (part) => ({ ...part, state: "waiting" });
      });
    case "CallStirred":
      return;
    case "CallResumed":
      return moveCall(state, event, touch, (call) => {
        call.state = "running";
        return (part) => ({ ...part, state: "running" });
      });
    case "CallSettled":
      return settle(state, event, touch);
    case "FilesChanged": {
      const at = state.writing.get(event.turn);
      return at ? change(state, at, touch, (message) => withFiles(message, event)) : undefined;
    }
    case "LateArrived":
      return moveCall(state, event, touch, (call) => {
        Object.assign(call, { isOut: false, late: event.at ?? 0 });
        return (part) => ({ ...part, late: event.output });
      });
    case "HookFinished":
    case "TurnParked":
      return;
    case "TurnEnding":
      turnOf(state, event.turn).ending = { outcome: event.outcome, problem: event.problem ?? null, hard: event.hard ?? false };
      return;
    case "TurnCompleted":
    case "TurnFailed":
    case "TurnCancelled": {
      const turn = turnOf(state, event.turn);
      Object.assign(turn, { ended: event.at ?? 0, reports: event.reports ?? [], live: [] });
      if (event.type === "TurnFailed") turn.problem = event.problem;
      touch("tree");
      return touch(`live:${event.turn}`);
    }
    case "TitleSet":
      state.title = event.title;
      return touch("tree");
    case "LeafSelected":
      state.leaf = event.message ?? null;
      return touch("tree");
    case "MessageDeleted":
      return remove(state, event.message, touch);
    case "GrantRevoked":
      state.revoked.add(event.grant);
      return;
    case "RevertStarted":
      return;
    case "FilesReverted":
      state.reverts.push({ root: event.root, before: event.before, after: event.after, by: event.by ?? "", at: event.at ?? 0 });
      return touch("tree");
    case "CommandDropped":
      return touch("tree");
    default:
      return unread(event);
  }
}

/** Never reached with events that this was built for; of those of a newer server nothing is drawn, and nothing breaks. */
function unread(_event: never): void {}

/** A piece of a part that streams. The server sends each character once. */
export function applyDelta(state: SessionState, delta: StreamDelta, touch: Touch): void {
  const live = turnOf(state, delta.turn).live;
  const kind = delta.type === "TextDelta" ? "text" : delta.type === "ReasoningDelta" ? "reasoning" : "call";
  let part = live[delta.part];
  if (part?.kind !== kind) {
    while (live.length < delta.part) live.push(blank("text")); // a file, of which nothing streams, or one whose text comes later
    live[delta.part] = part = blank(kind);
  }
  part.text += delta.text;
  if (delta.type === "CallDelta") {
    part.call = delta.call;
    if (delta.name) part.name = delta.name;
  }
  touch(`live:${delta.turn}`);
}

const blank = (kind: LivePart["kind"]): LivePart => ({ kind, text: "", call: "", name: "" });

/** What a running tool says of itself. */
export function applyProgress(state: SessionState, progress: CallProgress, touch: Touch): void {
  const call = state.turns.get(progress.turn)?.calls.get(progress.call);
  if (!call) return;
  call.progress = [...call.progress.slice(-PROGRESS + 1), progress.text];
  touch(`turn:${progress.turn}`);
}

const PROGRESS = 100; // lines that are kept

function turnOf(state: SessionState, id: string): TurnState {
  let turn = state.turns.get(id);
  if (!turn) {
    turn = {
      id, phase: "idle", options: {}, parent: null, input: null, answer: null, tip: null, started: 0, ended: 0, steps: [], live: [],
      calls: new Map(), gates: new Map(), limit: null, ending: null, problem: null, reports: [], usage: {},
    };
    state.turns.set(id, turn);
  }
  return turn;
}

function add(state: SessionState, message: Message, touch: Touch): void {
  if (!state.messages.has(message.id)) {
    const siblings = state.children.get(message.parent);
    if (siblings) siblings.push(message.id);
    else state.children.set(message.parent, [message.id]);
  }
  state.messages.set(message.id, message);
  touch(`message:${message.id}`);
}

function join(state: SessionState, message: Message, touch: Touch): void {
  add(state, message, touch);
  // Only the branch somebody looks at grows under their eyes.
  if (state.leaf === message.parent) state.leaf = message.id;
  touch("tree");
}

function change(state: SessionState, at: string, touch: Touch, how: (message: Message) => Message): void {
  const message = state.messages.get(at);
  if (!message) return;
  state.messages.set(at, how(message));
  touch(`message:${at}`);
}

function withPart(message: Message, part: Part): Message {
  return { ...message, parts: [...(message.parts ?? []), part] };
}

function endStep(state: SessionState, event: StepFinished | StepInterrupted, touch: Touch): void {
  const turn = turnOf(state, event.turn);
  const step = turn.steps.at(-1);
  const { finish, usage = {} } = event;
  if (step) Object.assign(step, { ended: event.at ?? 0, finish, usage, problem: ("problem" in event && event.problem) || null });
  turn.usage = sum(turn.usage, usage);
  turn.live = [];
  touch(`live:${event.turn}`);
  const at = state.writing.get(event.turn);
  if (!at) return;
  for (const part of event.parts) {
    if (part.type !== "tool") continue;
    state.calls.set(part.call, at);
    turn.calls.set(part.call, note(part.call, part.name, at, event.step, ""));
  }
  const end: Part = { type: "step", step: event.step, finish, usage };
  change(state, at, touch, (message) => ({ ...message, parts: [...(message.parts ?? []), ...event.parts, end] }));
}

function note(id: string, name: string, message: string, step: number, parent: string): CallNote {
  return {
    id, step, message, parent, name, state: "pending", tool: "", effects: "", judged: null, started: 0, settled: 0, isOut: false, late: 0,
    gates: [], below: [], progress: [],
  };
}

/** Sum two requests. The cost is that of those whose price is known. */
export function sum(one: Usage, other: Usage): Usage {
  const total: Record<string, number | boolean | null> = {};
  for (const name of ["input", "output", "cached", "reasoning", "written"] as const) total[name] = (one[name] ?? 0) + (other[name] ?? 0);
  const costs = [one.cost, other.cost].filter((cost) => cost !== undefined && cost !== null);
  total["cost"] = costs.length ? costs.reduce((a, b) => a + b, 0) : null;
  total["estimated"] = Boolean(one.estimated || other.estimated);
  return total as Usage;
}

function moveCall(
  state: SessionState,
  event: { readonly turn: string; readonly call: string },
  touch: Touch,
  move: (call: CallNote) => (part: ToolPart) => ToolPart,
): void {
  const call = turnOf(state, event.turn).calls.get(event.call);
  const at = state.calls.get(event.call);
  if (!call || !at) return;
  const moved = move(call);
  change(state, at, touch, (message) => {
    const parts = [...(message.parts ?? [])];
    const index = parts.findLastIndex((part) => part.type === "tool" && part.call === event.call);
    if (index >= 0) parts[index] = moved(parts[index] as ToolPart);
    return { ...message, parts };
  });
}

function openGate(state: SessionState, { gate, turn: id, at = 0 }: GateOpened, touch: Touch): void {
  const turn = turnOf(state, id);
  turn.gates.set(gate.id, { gate, opened: at, verdict: null, answered: 0, claim: null, grant: null });
  state.gates.set(gate.id, id);
  turn.calls.get(gate.call)?.gates.push(gate.id);
  if (!gate.call || gate.kind === "form" || gate.kind === "client") return;
  const to = gate.kind === "result" ? "reviewing" : "asking";
  moveCall(state, { turn: id, call: gate.call }, touch, (call) => {
    call.state = to;
    return (part) => ({ ...part, state: to });
  });
}

function answerGate(state: SessionState, event: GateAnswered, touch: Touch): void {
  const asked = turnOf(state, event.turn).gates.get(event.gate);
  if (asked) Object.assign(asked, { verdict: event.verdict, answered: event.at ?? 0, grant: event.grant ?? null });
  if (!event.call) return;
  moveCall(state, event, touch, (call) => {
    if (call.state !== "asking") return (part) => part;
    call.state = "pending";
    return (part) => ({ ...part, state: "pending", is_edited: Boolean(event.verdict.arguments) });
  });
}

function settle(state: SessionState, event: CallSettled, touch: Touch): void {
  moveCall(state, event, touch, (call) => {
    Object.assign(call, { state: event.state, settled: event.at ?? 0, isOut: event.out ?? false });
    return (part) => ({ ...part, state: event.state, output: event.output });
  });
}

function withFiles(message: Message, event: FilesChanged): Message {
  const parts = message.parts ?? [];
  const root = event.root ?? "";
  const at = parts.findLastIndex((part) => part.type === "files" && part.step === event.step && (part.root ?? "") === root);
  const part = parts[at];
  if (part?.type === "files") {
    const changes = joined(part.changes ?? [], event.changes ?? []);
    return { ...message, parts: parts.with(at, { ...part, after: event.after, changes }) };
  }
  if (!event.changes?.length) return message;
  return withPart(message, { type: "files", step: event.step, before: event.before, after: event.after, changes: event.changes, root });
}

/** What two changes come to, one after the other. */
function joined(first: readonly FileChange[], then: readonly FileChange[]): FileChange[] {
  const found = new Map(first.map((change) => [change.path, change]));
  for (const change of then) {
    const before = found.get(change.path);
    found.delete(change.path);
    if (!before) found.set(change.path, change);
    else if (!(before.kind === "added" && change.kind === "deleted")) {
      const kind = before.kind === "added" ? "added" : change.kind !== "deleted" ? "modified" : "deleted";
      const [added, removed] = [(before.added ?? 0) + (change.added ?? 0), (before.removed ?? 0) + (change.removed ?? 0)];
      found.set(change.path, { path: change.path, kind, added, removed });
    }
  }
  return [...found.values()];
}

function remove(state: SessionState, message: string, touch: Touch): void {
  const stack = [message];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    state.deleted.add(at);
    stack.push(...(state.children.get(at) ?? []));
  }
  if (state.leaf !== null && state.deleted.has(state.leaf)) state.leaf = state.messages.get(message)?.parent ?? null;
  touch("tree");
}
