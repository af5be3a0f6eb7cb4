/** Queries on the state of a session. */
import type { CallRecord, GateState, SessionState, TurnState } from "./state.js";
import type { Message, Part } from "./types.gen.js";

/** The branch that ends at a message, oldest first; without messages that a plugin hid. */
export function path(state: SessionState, leaf: string | null = state.leaf): Message[] {
  const found: Message[] = [];
  for (let id = leaf; id !== null; ) {
    const message = state.messages.get(id);
    if (!message || state.deleted.has(id)) break;
    if (!message.hidden) found.push(message);
    id = message.parent;
  }
  return found.reverse();
}

/** A message and its siblings, oldest first: the versions of a branch picker. */
export function versions(state: SessionState, message: Message): string[] {
  return (state.children.get(message.parent) ?? []).filter((id) => !state.deleted.has(id));
}

/** Whether a turn has ended. */
export function isOver(turn: TurnState): boolean {
  return turn.phase === "completed" || turn.phase === "error" || turn.phase === "cancelled";
}

/** The gates of a turn that still wait for an answer. */
export function openGates(turn: TurnState): GateState[] {
  return [...turn.gates.values()].filter((gateState) => isGateOpen(turn, gateState));
}

function isGateOpen(turn: TurnState, { gate, resolution }: GateState): boolean {
  const call = turn.calls.get(gate.call);
  const opensDuringRun = gate.kind === "form" || gate.kind === "client";
  const waitingStates = opensDuringRun ? ["running", "waiting"] : ["asking", "reviewing"];
  return resolution === null && !isOver(turn) && (call === undefined || waitingStates.includes(call.state));
}

/** Seconds that the tool of a call has run: from start to end, without the time it waited for a person. */
export function runSeconds(turn: TurnState, call: CallRecord, now: number): number {
  if (!call.started) return 0;
  const end = (call.isStillRunning ? 0 : call.late || call.finished) || now;
  let [ran, from] = [0, call.started];
  // Gates may overlap; each moment counts once. A client that runs the call is not a person.
  for (const id of call.gates) {
    const { gate, opened, answered } = turn.gates.get(id)!;
    if (gate.kind === "client" || opened < call.started) continue;
    ran += Math.max(0, Math.min(opened, end) - from);
    from = Math.max(from, Math.min(answered || end, end));
  }
  return ran + Math.max(0, end - from);
}

/** The calls that the tool of a call requested, in order. */
export function nestedCalls(turn: TurnState, parent: string): CallRecord[] {
  return [...turn.calls.values()].filter((call) => call.parent === parent);
}

/** The text parts only, with a blank line between steps. */
export function textOf(parts: readonly Part[] = []): string {
  const steps = [""];
  for (const part of parts) {
    if (part.type === "text") steps[steps.length - 1] += part.text;
    else if (part.type === "step" && steps.at(-1)) steps.push("");
  }
  return (steps.at(-1) ? steps : steps.slice(0, -1)).join("\n\n");
}
