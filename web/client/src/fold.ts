/** Fold: builds the state of a session from its log, event by event, as `Tree` and `TurnState` of `everturn.core` do.
 *
 * Every event has a case, and the compiler checks that: an event that is new on the server does not compile here until it is handled.
 */
import { isSameValue } from "./json.js";
import type { CallRecord, LivePart, SessionState, TurnState } from "./state.js";
import {
  TRANSITIONS, type CallProgress, type CallFinished, type FileChange, type FilesChanged, type GateResolved, type GateOpened,
  type LogEvent, type LogTail, type Message, type Part, type StepFinished, type StepInterrupted, type StreamDelta, type ToolPart, type Usage,
} from "./types.gen.js";
import type { Topic } from "./topics.js";

type Touch = (topic: Topic) => void;

export function emptySession(): SessionState {
  return {
    seq: 0, start: 1, title: "", isRenamed: false, agent: "", leaf: null, messages: new Map(), children: new Map(), deleted: new Set(), writing: new Map(),
    calls: new Map(), turns: new Map(), gates: new Map(), reverts: [], revoked: new Set(), ratings: new Map(),
  };
}

/** Fold a whole log. */
export function fold(entries: Iterable<{ readonly seq: number; readonly event: LogEvent }>): SessionState {
  const state = emptySession();
  for (const { seq, event } of entries) apply(state, seq, event, () => {});
  return state;
}

/** Apply one event and report the topics it changed. An event that was applied before changes nothing. */
export function apply(state: SessionState, seq: number, event: LogEvent, touch: Touch): void {
  if (seq && seq <= state.seq) return;
  if (seq) state.seq = seq;
  if (state.start > 1 && isLeftOut(state, event)) return;
  if ("turn" in event) {
    const turn = turnOf(state, event.turn);
    turn.phase = TRANSITIONS[turn.phase][event.type] ?? turn.phase;
    touch(`turn:${event.turn}`);
  }
  applyEvent(state, event, touch);
}

/** Whether an event is about a turn that is not loaded: the page that brings the turn has this event as well. */
function isLeftOut(state: SessionState, event: LogEvent): boolean {
  return "turn" in event && event.type !== "TurnStarted" && !state.turns.has(event.turn);
}

/** Add the turns before those that are loaded. Turns that are loaded already stay as they are. */
export function addEarlier(state: SessionState, page: LogTail, touch: Touch): void {
  const earlier = emptySession();
  earlier.start = page.start;
  for (const { seq, event } of page.entries) apply(earlier, seq, event, () => {});
  state.start = page.start;
  state.messages = new Map([...earlier.messages, ...state.messages]);
  for (const [parent, ids] of state.children) {
    const siblings = earlier.children.get(parent) ?? [];
    earlier.children.set(parent, [...siblings, ...ids.filter((id) => !siblings.includes(id))]);
  }
  state.children = earlier.children;
  state.turns = new Map([...earlier.turns, ...state.turns]);
  state.writing = new Map([...earlier.writing, ...state.writing]);
  state.calls = new Map([...earlier.calls, ...state.calls]);
  state.gates = new Map([...earlier.gates, ...state.gates]);
  state.reverts = [...earlier.reverts, ...state.reverts];
  state.revoked = new Set([...earlier.revoked, ...state.revoked]);
  for (const [message, later] of state.ratings) earlier.ratings.set(message, new Map([...(earlier.ratings.get(message) ?? []), ...later]));
  state.ratings = earlier.ratings;
  for (const id of [...earlier.deleted, ...state.deleted]) for (const under of below(state, id)) state.deleted.add(under);
  touch("tree");
}

function applyEvent(state: SessionState, event: LogEvent, touch: Touch): void {
  switch (event.type) {
    case "TurnStarted": {
      const turn = turnOf(state, event.turn);
      Object.assign(turn, { options: event.options ?? {}, started: event.at ?? 0, parent: event.parent ?? null, command: event.command ?? "" });
      turn.tip = turn.parent;
      if (event.input) {
        addMessage(state, event.input, touch);
        turn.input = turn.tip = event.input.id;
      }
      state.leaf = event.input ? event.input.id : (event.parent ?? null);
      state.agent = event.options?.agent || state.agent;
      return touch("tree");
    }
    case "AnswerStarted": {
      const turn = turnOf(state, event.turn);
      turn.answer = turn.tip = event.message.id;
      state.writing.set(event.turn, event.message.id);
      return appendMessage(state, event.message, touch);
    }
    case "MessageAdded":
      turnOf(state, event.turn).tip = event.message.id;
      return appendMessage(state, event.message, touch);
    case "InputRefused":
      if (state.messages.get(event.message)?.turn !== event.turn) return; // a re-run leaves another turn's message as it is
      return updateMessage(state, event.message, touch, (message) => ({ ...message, refused: true }));
    case "StepStarted": {
      const turn = turnOf(state, event.turn);
      const fresh = { restarts: 0, retries: [], ended: 0, finish: null, problem: null, usage: {} };
      turn.steps.push({ number: event.step, closing: event.closing ?? false, started: event.at ?? 0, ...fresh });
      turn.live = [];
      turn.wait = "";
      return touch(`live:${event.turn}`);
    }
    case "StepRestarted": {
      const turn = turnOf(state, event.turn);
      turn.steps.at(-1)!.restarts += 1;
      turn.live = [];
      turn.wait = "";
      return touch(`live:${event.turn}`);
    }
    case "RequestRetried":
      turnOf(state, event.turn).steps.at(-1)?.retries.push(event);
      return touch(`live:${event.turn}`);
    case "StepFinished":
    case "StepInterrupted":
      return endStep(state, event, touch);
    case "GateOpened":
      return openGate(state, event, touch);
    case "GateResolved":
      return resolveGate(state, event, touch);
    case "CallClaimed": {
      const gateState = turnOf(state, event.turn).gates.get(event.gate);
      if (gateState) gateState.claim = event.claim;
      return;
    }
    case "NestedCallRequested": {
      const messageId = state.calls.get(event.parent);
      if (!messageId) return;
      const turn = turnOf(state, event.turn);
      const { call, name, arguments: args, identity, parent } = event;
      state.calls.set(call, messageId);
      turn.calls.set(call, newCallRecord(call, name, messageId, turn.calls.get(parent)?.step ?? turn.steps.length, parent));
      return updateMessage(state, messageId, touch, (message) => withPart(message, { type: "tool", call, name, arguments: args, identity, parent }));
    }
    case "PermissionDecided": {
      const call = turnOf(state, event.turn).calls.get(event.call);
      if (call) Object.assign(call, { decision: event, tool: event.tool });
      return;
    }
    case "LimitReached":
      turnOf(state, event.turn).limit = event;
      return;
    case "CallStarted":
      return updateCall(state, event, touch, (call) => {
        Object.assign(call, { state: "running", started: event.at ?? 0, tool: event.tool, readOnly: event.read_only ?? false, idempotent: event.idempotent ?? false });
        return (part) => ({ ...part, state: "running", used: isSameValue(event.arguments, part.arguments) ? "" : event.arguments });
      });
    case "SubagentStarted":
      turnOf(state, event.turn).calls.get(event.call)?.children.push({ session: event.session, turn: event.child });
      return;
    case "CallSuspended":
      return updateCall(state, event, touch, (call) => {
        call.state = "waiting";
        return (part) => ({ ...part, state: "waiting" });
      });
    case "CallNotified":
    case "ToolStepStarted":
    case "ToolStepFinished":
    case "WaitFinished":
      return;
    case "WaitStarted": {
      const call = turnOf(state, event.turn).calls.get(event.call);
      if (call) call.waitsFor = event.label ?? "";
      return;
    }
    case "CallResumed":
      return updateCall(state, event, touch, (call) => {
        call.state = "running";
        return (part) => ({ ...part, state: "running" });
      });
    case "CallFinished":
      return finishCall(state, event, touch);
    case "FilesChanged": {
      const messageId = state.writing.get(event.turn);
      return messageId ? updateMessage(state, messageId, touch, (message) => withFiles(message, event)) : undefined;
    }
    case "LateResultReceived":
      return updateCall(state, event, touch, (call) => {
        Object.assign(call, { isStillRunning: false, late: event.at ?? 0 });
        return (part) => ({ ...part, late: event.output });
      });
    case "CompactionStarted":
      turnOf(state, event.turn).compaction = event;
      return touch(`live:${event.turn}`);
    case "CompactionFinished": // its message is added in the same append
    case "CompactionFailed": {
      const turn = turnOf(state, event.turn);
      turn.compaction = null;
      turn.compactionProblem = event.type === "CompactionFailed" ? event.problem : null;
      turn.usage = addUsage(turn.usage, event.usage ?? {});
      return touch(`live:${event.turn}`);
    }
    case "HookFinished":
    case "TurnSuspended":
    case "OutputRejected": // the step was written without its parts; the attempt is in the log alone
      return;
    case "AgentSwitched":
      turnOf(state, event.turn).options = event.options;
      state.agent = event.agent;
      return touch("tree");
    case "AgentSelected":
      state.agent = event.agent;
      return touch("tree");
    case "TurnFinishing":
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
      if (!state.isRenamed) state.title = event.title;
      return touch("tree");
    case "SessionUpdated":
      if (event.title == null) return;
      Object.assign(state, { title: event.title, isRenamed: true });
      return touch("tree");
    case "LeafSelected":
      state.leaf = event.message ?? null;
      return touch("tree");
    case "MessageDeleted":
      return deleteMessage(state, event.message, touch);
    case "MessagesImported":
      for (const message of event.messages) {
        addMessage(state, message, touch);
        state.leaf = message.id;
      }
      if (!state.isRenamed) state.title = event.title || state.title;
      return touch("tree");
    case "AnswerRated": {
      const { message, by = "", rating, reason = "" } = event;
      state.ratings.set(message, new Map(state.ratings.get(message)).set(by, { rating, reason }));
      return touch("tree");
    }
    case "GrantRevoked":
      state.revoked.add(event.grant);
      return;
    case "RevertStarted":
    case "FileUploadChanged":
    case "InstructionsSet":
      return;
    case "FilesReverted":
      state.reverts.push({ root: event.root, before: event.before, after: event.after, by: event.by ?? "", at: event.at ?? 0 });
      return touch("tree");
    case "CommandDropped":
      return touch("tree");
    default:
      return ignoreUnknown(event);
  }
}

/** Unreachable for events known at build time; events of a newer server are ignored. */
function ignoreUnknown(_event: never): void {}

/** Apply a delta of a streaming part. The server sends each character once. */
export function applyDelta(state: SessionState, delta: StreamDelta, touch: Touch): void {
  const live = turnOf(state, delta.turn).live;
  const kind = delta.type === "TextDelta" ? "text" : delta.type === "ReasoningDelta" ? "reasoning" : "call";
  let part = live[delta.part];
  if (part?.kind !== kind) {
    while (live.length < delta.part) live.push(emptyPart("text")); // a file, which does not stream, or a part whose text comes later
    live[delta.part] = part = emptyPart(kind);
  }
  part.text += delta.text;
  if (delta.type === "CallDelta") {
    part.call = delta.call;
    if (delta.name) part.name = delta.name;
  }
  touch(`live:${delta.turn}`);
}

const emptyPart = (kind: LivePart["kind"]): LivePart => ({ kind, text: "", call: "", name: "" });

/** Apply a progress report of a running tool or, without a call, of the model request. */
export function applyProgress(state: SessionState, progress: CallProgress, touch: Touch): void {
  const turn = state.turns.get(progress.turn);
  if (turn && !progress.call) {
    turn.wait = progress.text;
    touch(`live:${progress.turn}`);
    return;
  }
  const call = turn?.calls.get(progress.call);
  if (!call) return;
  call.progress = [...call.progress.slice(-MAX_PROGRESS + 1), progress.text];
  touch(`turn:${progress.turn}`);
}

const MAX_PROGRESS = 100; // progress lines kept per call

function turnOf(state: SessionState, id: string): TurnState {
  let turn = state.turns.get(id);
  if (!turn) {
    turn = {
      id, phase: "idle", options: {}, parent: null, command: "", input: null, answer: null, tip: null, started: 0, ended: 0, steps: [], live: [], wait: "",
      calls: new Map(), gates: new Map(), compaction: null, compactionProblem: null, limit: null, ending: null, problem: null, reports: [], usage: {},
    };
    state.turns.set(id, turn);
  }
  return turn;
}

function addMessage(state: SessionState, message: Message, touch: Touch): void {
  if (!state.messages.has(message.id)) {
    const siblings = state.children.get(message.parent);
    if (siblings) siblings.push(message.id);
    else state.children.set(message.parent, [message.id]);
  }
  state.messages.set(message.id, message);
  touch(`message:${message.id}`);
}

function appendMessage(state: SessionState, message: Message, touch: Touch): void {
  addMessage(state, message, touch);
  // Only the selected branch grows.
  if (state.leaf === message.parent) state.leaf = message.id;
  touch("tree");
}

function updateMessage(state: SessionState, messageId: string, touch: Touch, how: (message: Message) => Message): void {
  const message = state.messages.get(messageId);
  if (!message) return;
  state.messages.set(messageId, how(message));
  touch(`message:${messageId}`);
}

function withPart(message: Message, part: Part): Message {
  return { ...message, parts: [...(message.parts ?? []), part] };
}

function endStep(state: SessionState, event: StepFinished | StepInterrupted, touch: Touch): void {
  const turn = turnOf(state, event.turn);
  const step = turn.steps.at(-1);
  const { finish, usage = {}, model = "" } = event;
  if (step) Object.assign(step, { ended: event.at ?? 0, finish, usage, problem: ("problem" in event && event.problem) || null });
  turn.usage = addUsage(turn.usage, usage);
  turn.live = [];
  touch(`live:${event.turn}`);
  const messageId = state.writing.get(event.turn);
  if (!messageId) return;
  for (const part of event.parts) {
    if (part.type !== "tool") continue;
    state.calls.set(part.call, messageId);
    turn.calls.set(part.call, newCallRecord(part.call, part.name, messageId, event.step, ""));
  }
  const end: Part = { type: "step", step: event.step, finish, usage, model, ...("continues" in event && event.continues ? { continues: true } : {}) };
  updateMessage(state, messageId, touch, (message) => ({ ...message, parts: [...(message.parts ?? []), ...event.parts, end] }));
}

function newCallRecord(id: string, name: string, message: string, step: number, parent: string): CallRecord {
  return {
    id, step, message, parent, name, state: "pending", tool: "", readOnly: false, idempotent: false, decision: null, started: 0, finished: 0,
    isStillRunning: false, late: 0, gates: [], children: [], waitsFor: "", progress: [],
  };
}

/** Add the usage of two requests. The cost covers the requests whose price is known. */
export function addUsage(left: Usage, right: Usage): Usage {
  const total: Record<string, number | boolean | null> = {};
  for (const name of ["input", "output", "cached", "reasoning", "written"] as const) total[name] = (left[name] ?? 0) + (right[name] ?? 0);
  const costs = [left.cost, right.cost].filter((cost) => cost !== undefined && cost !== null);
  total["cost"] = costs.length ? costs.reduce((a, b) => a + b, 0) : null;
  total["estimated"] = Boolean(left.estimated || right.estimated);
  return total as Usage;
}

function updateCall(
  state: SessionState,
  event: { readonly turn: string; readonly call: string },
  touch: Touch,
  move: (call: CallRecord) => (part: ToolPart) => ToolPart,
): void {
  const call = turnOf(state, event.turn).calls.get(event.call);
  const messageId = state.calls.get(event.call);
  if (!call || !messageId) return;
  const moved = move(call);
  updateMessage(state, messageId, touch, (message) => {
    const parts = [...(message.parts ?? [])];
    const index = parts.findLastIndex((part) => part.type === "tool" && part.call === event.call);
    if (index >= 0) parts[index] = moved(parts[index] as ToolPart);
    return { ...message, parts };
  });
}

function openGate(state: SessionState, { gate, turn: id, at: openedAt = 0 }: GateOpened, touch: Touch): void {
  const turn = turnOf(state, id);
  turn.gates.set(gate.id, { gate, opened: openedAt, resolution: null, answered: 0, claim: null, grant: null });
  state.gates.set(gate.id, id);
  turn.calls.get(gate.call)?.gates.push(gate.id);
  if (!gate.call || gate.kind === "form" || gate.kind === "client") return;
  const to = gate.kind === "result" ? "reviewing" : "asking";
  updateCall(state, { turn: id, call: gate.call }, touch, (call) => {
    call.state = to;
    return (part) => ({ ...part, state: to });
  });
}

function resolveGate(state: SessionState, event: GateResolved, touch: Touch): void {
  const gateState = turnOf(state, event.turn).gates.get(event.gate);
  if (gateState) Object.assign(gateState, { resolution: event.resolution, answered: event.at ?? 0, grant: event.grant ?? null });
  if (!event.call) return;
  updateCall(state, event, touch, (call) => {
    if (call.state !== "asking") return (part) => part;
    call.state = "pending";
    return (part) => ({ ...part, state: "pending", is_edited: Boolean(event.resolution.arguments) });
  });
}

function finishCall(state: SessionState, event: CallFinished, touch: Touch): void {
  updateCall(state, event, touch, (call) => {
    Object.assign(call, { state: event.state, finished: event.at ?? 0, isStillRunning: event.still_running ?? false });
    return (part) => ({ ...part, state: event.state, output: event.output });
  });
}

function withFiles(message: Message, event: FilesChanged): Message {
  const parts = message.parts ?? [];
  const root = event.root ?? "";
  const index = parts.findLastIndex((part) => part.type === "files" && part.step === event.step && (part.root ?? "") === root);
  const part = parts[index];
  if (part?.type === "files") {
    const changes = mergeChanges(part.changes ?? [], event.changes ?? []);
    return { ...message, parts: parts.with(index, { ...part, after: event.after, changes }) };
  }
  if (!event.changes?.length) return message;
  return withPart(message, { type: "files", step: event.step, before: event.before, after: event.after, changes: event.changes, root });
}

/** Merge two successive sets of file changes. */
function mergeChanges(first: readonly FileChange[], then: readonly FileChange[]): FileChange[] {
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

function deleteMessage(state: SessionState, message: string, touch: Touch): void {
  for (const id of below(state, message)) state.deleted.add(id);
  if (state.leaf !== null && state.deleted.has(state.leaf)) {
    // The parent of a message that is not loaded is unknown: the leaf is then missing, and the follower loads again.
    const deleted = state.messages.get(message);
    state.leaf = deleted ? (deleted.parent ?? null) : message;
  }
  touch("tree");
}

/** A message and everything under it. */
function below(state: SessionState, message: string): string[] {
  const found = [message];
  for (let index = 0; index < found.length; index++) found.push(...(state.children.get(found[index]!) ?? []));
  return found;
}
