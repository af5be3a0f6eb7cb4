/** Batches of gates: which gates can be answered together, how a list of gates is grouped and filtered, and the answers. Pure. */
import type { Gate, GateView } from "@everturn/client";
import { countInvisible, escapeInvisible, findLookalikes, isMixedDirection } from "./invisibleChars";
import { objectMembers, orderMembers, parseJson } from "./json";
import { hintsFor } from "./risks";

export const COMPACT_FROM = 3; // gates side by side from which each is a row
export const ROW_LENGTH = 160; // characters of the arguments in a row
const AT_ONCE = 6; // requests; a browser has as many connections

/** A gate and the session that it is answered in. */
export interface BatchItem {
  readonly session: string;
  readonly gate: Gate;
}

/** Whether "allow all" covers a gate: it asks whether a call may run, and nothing else. */
export function isBatchable(gate: Gate): boolean {
  return (gate.kind ?? "call") === "call" || gate.kind === "egress";
}

/** The arguments on one line, in the order of the tool's schema, with invisible characters written out. Cut at `ROW_LENGTH`. */
export function argumentLine(gate: Gate, schema?: unknown): string {
  const members = objectMembers(gate.arguments);
  const text = members ? orderMembers(members, schema).map(([name, value]) => `${name}: ${plain(value)}`).join(" · ") : gate.arguments;
  const shown = escapeInvisible(text.replace(/\s+/g, " "));
  return shown.length > ROW_LENGTH ? `${shown.slice(0, ROW_LENGTH - 1)}…` : shown;
}

/** The value of a member as text: a JSON string without its quotes. */
function plain(json: string): string {
  const value = json.startsWith('"') ? parseJson(json) : undefined;
  return typeof value === "string" ? value : json;
}

/** What a person should look at before allowing a gate from its row alone. */
export interface RowWarnings {
  readonly risks: number; // risk hints, data that is sent outside, letters that mislead
  readonly isCut: boolean; // the row does not show all of the arguments
}

export function rowWarnings(gate: Gate): RowWarnings {
  const text = gate.arguments;
  const misleads = countInvisible(text) > 0 || isMixedDirection(text) || findLookalikes(text).length > 0;
  const risks = hintsFor(gate.tool, parseJson(text)).length + (misleads ? 1 : 0) + (gate.kind === "egress" ? 1 : 0);
  return { risks, isCut: argumentLine(gate).endsWith("…") };
}

/** How many of each tool, most first. */
export function countByTool(gates: readonly Gate[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { tool } of gates) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export type Grouping = "session" | "tool" | "agent";

export interface GateGroup {
  readonly key: string; // the session, the tool or the agent
  readonly gates: readonly GateView[];
}

/** Group gates, in the same order within and among groups. */
export function groupGates(gates: readonly GateView[], by: Grouping, isNewest: boolean, agentOf: (session: string) => string): GateGroup[] {
  const found = new Map<string, GateView[]>();
  const sorted = [...gates].sort((a, b) => (isNewest ? b.opened - a.opened : a.opened - b.opened));
  for (const view of sorted) {
    const key = by === "session" ? view.session : by === "tool" ? view.gate.tool : agentOf(view.session);
    const group = found.get(key);
    if (group) group.push(view);
    else found.set(key, [view]);
  }
  return [...found].map(([key, views]) => ({ key, gates: views }));
}

/** The first `count` gates of these groups. */
export function takeGates(groups: readonly GateGroup[], count: number): GateGroup[] {
  const taken: GateGroup[] = [];
  for (const group of groups) {
    if (count <= 0) break;
    taken.push({ ...group, gates: group.gates.slice(0, count) });
    count -= group.gates.length;
  }
  return taken;
}

/** Gates of a tool ("": any) that have every word of a text in their tool, title or arguments. */
export function filterGates(gates: readonly GateView[], tool: string, text: string): GateView[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return gates.filter(({ gate, title }) => {
    if (tool && gate.tool !== tool) return false;
    const content = words.length ? `${gate.tool} ${title} ${gate.arguments}`.toLowerCase() : "";
    return words.every((word) => content.includes(word));
  });
}

/** What became of the answer to each gate: "" was taken, else the error code. */
export type Outcomes = ReadonlyMap<string, string>;

/** Answer each gate by a request of its own, so that each answer is bound to the hash of its gate and has its own outcome. */
export async function answerEach(
  items: readonly BatchItem[], answer: (item: BatchItem) => Promise<string>, onProgress: (count: number) => void,
): Promise<Outcomes> {
  const outcomes = new Map<string, string>();
  let next = 0;
  const work = async () => {
    for (let item = items[next++]; item; item = items[next++]) {
      outcomes.set(item.gate.id, await answer(item));
      onProgress(outcomes.size);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return outcomes;
}
