/// <reference types="node" />
/** Golden logs: what Python folds every prefix of them to, and the same view of a state that was folded here. */
import { readFileSync, readdirSync } from "node:fs";
import { openGates } from "../src/views";
import type { CallRecord, SessionState, TurnState } from "../src/state";
import type { LogEvent } from "../src/types.gen";

const FOLDER = new URL("../../../tests/golden/v1/", import.meta.url);

export interface Golden {
  readonly name: string;
  readonly events: readonly LogEvent[];
  /** A row per event: everything that changed with it. */
  readonly rows: readonly Record<string, unknown>[];
}

export const goldens: Golden[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".jsonl"))
  .map((file) => {
    const name = file.replace(".jsonl", "");
    const lines = readFileSync(new URL(file, FOLDER), "utf8").trim().split("\n");
    const rows = JSON.parse(readFileSync(new URL(`${name}.folded.json`, FOLDER), "utf8")) as Record<string, unknown>[];
    return { name, events: lines.map((line) => (JSON.parse(line) as { event: LogEvent }).event), rows };
  });

/** Everything of a session that Python's rows cover, in their form. */
export function describeState(state: SessionState): Record<string, unknown> {
  const found: Record<string, unknown> = {
    title: state.title, agent: state.agent, leaf: state.leaf, deleted: [...state.deleted].sort(),
    writing: Object.fromEntries(state.writing), calls: Object.fromEntries(state.calls),
  };
  for (const [id, message] of state.messages) found[`message ${id}`] = message;
  for (const [parent, children] of state.children) found[`children ${parent ?? ""}`] = children;
  for (const turn of state.turns.values()) describeTurn(turn, found);
  return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, withoutDefaults(value) ?? null]));
}

function describeTurn(turn: TurnState, found: Record<string, unknown>): void {
  const { id, phase, options, started, parent, input, answer, tip, usage, limit, ending } = turn;
  const still_running = [...turn.calls.values()].filter((call) => call.isStillRunning).map((call) => call.id);
  const steps = turn.steps.at(-1)?.number ?? 0;
  found[`turn ${id}`] = { phase, options, started, parent, input, answer, tip, steps, usage, limit, ending, still_running };
  for (const { number, closing, finish, problem } of turn.steps) found[`step ${id} ${number}`] = { closing, finish, problem };
  for (const call of turn.calls.values()) found[`call ${id} ${call.id}`] = describeCall(turn, call);
  const open = openGates(turn);
  for (const gateState of turn.gates.values()) {
    found[`gate ${id} ${gateState.gate.id}`] = { gate: gateState.gate, resolution: gateState.resolution, claim: gateState.claim, is_asked: open.includes(gateState) };
  }
}

function describeCall(turn: TurnState, call: CallRecord): unknown {
  const { state, step, name, message, parent, decision, tool, idempotent, started } = call;
  // Python keeps the gates about a call with the call; gates its tool opened while it ran belong to the turn.
  const gates = call.gates.filter((gate) => !["form", "client"].includes(turn.gates.get(gate)?.gate.kind ?? ""));
  const children = call.children.map((child) => [child.session, child.turn]);
  const flags = { read_only: call.readOnly, idempotent, is_still_running: call.isStillRunning, is_late: call.late > 0 };
  return { state, step, name, message, parent, decision, tool, started, ...flags, children, gates };
}

const ALWAYS_WRITTEN = ["output", "late", "resolution"];

/** As `bare` in scripts/web_golden.py: without default values. */
function withoutDefaults(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.length ? value.map((item) => withoutDefaults(item) ?? null) : undefined;
  if (typeof value === "object" && value !== null) {
    const isNew = "type" in value && value.type === "tool" && "state" in value && value.state === "pending";
    const normalized = isNew ? { ...value, state: "" } : value;
    const found = Object.entries(normalized).map(([name, item]) => [name, withoutDefaults(item, name)] as const).filter(([, item]) => item !== undefined);
    return found.length || ALWAYS_WRITTEN.includes(key) ? Object.fromEntries(found) : undefined;
  }
  return value || undefined;
}
