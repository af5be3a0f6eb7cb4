/** Questions to a folded session. */
import type { CallNote, GateState, SessionState, TurnState } from "./state.js";
import type { Message, Part } from "./types.gen.js";

/** The branch that ends at a message, oldest first; without those a plugin kept out of the conversation. */
export function path(state: SessionState, leaf: string | null = state.leaf): Message[] {
  const found: Message[] = [];
  for (let at = leaf; at !== null; ) {
    const message = state.messages.get(at);
    if (!message || state.deleted.has(at)) break;
    if (!message.hidden) found.push(message);
    at = message.parent;
  }
  return found.reverse();
}

/** A message and its siblings, oldest first: what a branch picker offers. */
export function versions(state: SessionState, message: Message): string[] {
  return (state.children.get(message.parent) ?? []).filter((id) => !state.deleted.has(id));
}

/** Whether a turn is over. */
export function isOver(turn: TurnState): boolean {
  return turn.phase === "completed" || turn.phase === "error" || turn.phase === "cancelled";
}

/** The gates of a turn that still wait for an answer. */
export function openGates(turn: TurnState): GateState[] {
  return [...turn.gates.values()].filter((one) => isAsked(turn, one));
}

function isAsked(turn: TurnState, { gate, verdict }: GateState): boolean {
  const call = turn.calls.get(gate.call);
  const within = gate.kind === "form" || gate.kind === "client";
  const waits = within ? ["running", "waiting"] : ["asking", "reviewing"];
  return verdict === null && !isOver(turn) && (call === undefined || waits.includes(call.state));
}

/** How many seconds a call's tool has run: from its start to its end, without the time in which it waited for a person. */
export function ranFor(turn: TurnState, call: CallNote, now: number): number {
  if (!call.started) return 0;
  const end = (call.isOut ? 0 : call.late || call.settled) || now;
  let [ran, from] = [0, call.started];
  // A question may stand open beside another; each moment counts once. A client that does the call is no person.
  for (const id of call.gates) {
    const { gate, opened, answered } = turn.gates.get(id)!;
    if (gate.kind === "client" || opened < call.started) continue;
    ran += Math.max(0, Math.min(opened, end) - from);
    from = Math.max(from, Math.min(answered || end, end));
  }
  return ran + Math.max(0, end - from);
}

/** The calls that a call's tool made, in order. */
export function callsOf(turn: TurnState, parent: string): CallNote[] {
  return [...turn.calls.values()].filter((call) => call.parent === parent);
}

/** Only what was said: the text parts, steps with a blank line between. */
export function textOf(parts: readonly Part[] = []): string {
  const said = [""];
  for (const part of parts) {
    if (part.type === "text") said[said.length - 1] += part.text;
    else if (part.type === "step" && said.at(-1)) said.push("");
  }
  return (said.at(-1) ? said : said.slice(0, -1)).join("\n\n");
}
