/// <reference types="node" />
/** The golden logs, what Python says that every beginning of them comes to, and the same said of a session that was folded here. */
import { readFileSync, readdirSync } from "node:fs";
import { openGates } from "../src/views";
import type { CallNote, SessionState, TurnState } from "../src/state";
import type { LogEvent } from "../src/types.gen";

const FOLDER = new URL("../../../tests/golden/v1/", import.meta.url);

export interface Golden {
  readonly name: string;
  readonly events: readonly LogEvent[];
  /** A row for each event: all that is otherwise than before it. */
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

/** All of a session that Python has an opinion of, as it would write it. */
export function told(state: SessionState): Record<string, unknown> {
  const found: Record<string, unknown> = {
    title: state.title, leaf: state.leaf, deleted: [...state.deleted].sort(),
    writing: Object.fromEntries(state.writing), calls: Object.fromEntries(state.calls),
  };
  for (const [id, message] of state.messages) found[`message ${id}`] = message;
  for (const [parent, children] of state.children) found[`children ${parent ?? ""}`] = children;
  for (const turn of state.turns.values()) tellTurn(turn, found);
  return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, bare(value) ?? null]));
}

function tellTurn(turn: TurnState, found: Record<string, unknown>): void {
  const { id, phase, options, started, parent, input, answer, tip, usage, limit, ending } = turn;
  const out = [...turn.calls.values()].filter((call) => call.isOut).map((call) => call.id);
  const steps = turn.steps.at(-1)?.number ?? 0;
  found[`turn ${id}`] = { phase, options, started, parent, input, answer, tip, steps, usage, limit, ending, out };
  for (const { number, closing, finish, problem } of turn.steps) found[`step ${id} ${number}`] = { closing, finish, problem };
  for (const call of turn.calls.values()) found[`call ${id} ${call.id}`] = tellCall(turn, call);
  const open = openGates(turn);
  for (const one of turn.gates.values()) {
    found[`gate ${id} ${one.gate.id}`] = { gate: one.gate, verdict: one.verdict, claim: one.claim, is_asked: open.includes(one) };
  }
}

function tellCall(turn: TurnState, call: CallNote): unknown {
  const { state, step, name, message, parent, judged, tool, effects, started } = call;
  // Python keeps with a call the gates about it; those its tool opened while it ran are the turn's.
  const gates = call.gates.filter((gate) => !["form", "client"].includes(turn.gates.get(gate)?.gate.kind ?? ""));
  const below = call.below.map((one) => [one.session, one.turn]);
  return { state, step, name, message, parent, judged, tool, effects, started, is_out: call.isOut, is_late: call.late > 0, below, gates };
}

const KEPT = ["output", "late", "verdict"];

/** As `bare` in scripts/web_golden.py: without what is as it would be anyway. */
function bare(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.length ? value.map((one) => bare(one) ?? null) : undefined;
  if (typeof value === "object" && value !== null) {
    const isNew = "type" in value && value.type === "tool" && "state" in value && value.state === "pending";
    const given = isNew ? { ...value, state: "" } : value;
    const found = Object.entries(given).map(([name, one]) => [name, bare(one, name)] as const).filter(([, one]) => one !== undefined);
    return found.length || KEPT.includes(key) ? Object.fromEntries(found) : undefined;
  }
  return value || undefined;
}
