/** Outline of a conversation: its messages as rows, in which a branch begins where a message has several answers. Pure. */
import { textOf, type Message } from "@everturn/client";

/** A row: a message, or a stretch of messages without branches that is folded. */
export interface OutlineRow {
  readonly id: string; // of the message, or of the first of the stretch
  readonly message: Message | null; // null: a folded stretch
  readonly folded: number; // how many messages the stretch has
  readonly level: number; // from 1; each branch is one deeper
  readonly parent: string; // the row from which the branch begins; ""
  readonly branches: number; // how many branches begin here
  readonly isLast: boolean; // the end of a branch
  readonly isCurrent: boolean; // on the selected branch
}

const LONGEST = 6; // messages without branches that are all shown
const KEPT = 2; // messages that are shown on either side of a folded stretch

/** The rows of a tree of messages, in the order in which they are read; `opened` are the stretches that are not folded. */
export function buildOutline(messages: readonly Message[], leaf: string | null, opened: ReadonlySet<string> = new Set()): OutlineRow[] {
  const visible = messages.filter((message) => !message.hidden);
  const byId = new Map(messages.map((message) => [message.id, message]));
  const above = (message: Message): string => {
    let parent = message.parent ?? "";
    while (parent && byId.get(parent)?.hidden) parent = byId.get(parent)!.parent ?? "";
    return byId.has(parent) ? parent : "";
  };
  const children = new Map<string, Message[]>();
  for (const message of visible) {
    const parent = above(message);
    const siblings = children.get(parent);
    if (siblings) siblings.push(message);
    else children.set(parent, [message]);
  }
  const current = new Set<string>();
  for (let id = leaf ?? ""; id && !current.has(id); id = byId.get(id)?.parent ?? "") current.add(id);
  const rows: OutlineRow[] = [];
  const stack: { start: Message; level: number; parent: string }[] = (children.get("") ?? []).toReversed().map((start) => ({ start, level: 1, parent: "" }));
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { start, level, parent } = next;
    const run = [start];
    for (let below = children.get(start.id) ?? []; below.length === 1; below = children.get(run.at(-1)!.id) ?? []) run.push(below[0]!);
    const end = run.at(-1)!;
    const below = children.get(end.id) ?? [];
    const row = (message: Message): OutlineRow => ({
      id: message.id, message, folded: 0, level, parent, branches: message === end ? below.length : 0, isLast: message === end && !below.length, isCurrent: current.has(message.id),
    });
    const hidden = run.length > LONGEST ? run.slice(KEPT, -KEPT) : [];
    if (!hidden.length || opened.has(hidden[0]!.id)) rows.push(...run.map(row));
    else {
      rows.push(...run.slice(0, KEPT).map(row));
      rows.push({ id: hidden[0]!.id, message: null, folded: hidden.length, level, parent, branches: 0, isLast: false, isCurrent: current.has(hidden.at(-1)!.id) });
      rows.push(...run.slice(-KEPT).map(row));
    }
    stack.push(...below.toReversed().map((branch) => ({ start: branch, level: level + 1, parent: end.id })));
  }
  return rows;
}

/** What a row says of a message: its first line, or the tools that it called. */
export function summarize(message: Message): string {
  const text = textOf(message.parts).trim().split("\n", 1)[0] ?? "";
  if (text) return text.slice(0, 200);
  const tools = (message.parts ?? []).flatMap((part) => (part.type === "tool" ? [part.name] : []));
  return [...new Set(tools)].join(", ");
}
