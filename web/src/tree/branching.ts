/** Questions about the branches of a session. */
import { path, versions, type Message, type SessionState } from "@everturn/client";

/** The newest leaf under a message: the last child of the last child, as far as it goes. */
export function newestLeaf(state: SessionState, message: string): string {
  for (let at = message; ; ) {
    const next = (state.children.get(at) ?? []).findLast((id) => !state.deleted.has(id));
    if (next === undefined) return at;
    at = next;
  }
}

/** The versions of a message that a person can choose among, oldest first; what a plugin kept to itself is none. */
export function choices(state: SessionState, message: Message): string[] {
  return versions(state, message).filter((id) => !state.messages.get(id)?.hidden);
}

/** The end of the branch that a message is looked at in: the selected one where it goes through it. */
export function leafThrough(state: SessionState, message: string): string {
  const isSelected = state.leaf !== null && path(state).some((one) => one.id === message);
  return isSelected ? state.leaf! : newestLeaf(state, message);
}

/** How many messages stand under one, in all branches: what goes along when it is deleted. */
export function countUnder(state: SessionState, message: string): number {
  let count = 0;
  const stack = [...(state.children.get(message) ?? [])];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (state.deleted.has(at)) continue;
    if (!state.messages.get(at)?.hidden) count += 1;
    stack.push(...(state.children.get(at) ?? []));
  }
  return count;
}

/** Two branches: what they have in common, and what each has alone. */
export interface Parting {
  common: Message[];
  left: Message[];
  right: Message[];
}

export function partingOf(state: SessionState, left: string, right: string): Parting {
  const [one, other] = [path(state, left), path(state, right)];
  let same = 0;
  while (same < one.length && same < other.length && one[same]!.id === other[same]!.id) same += 1;
  return { common: one.slice(0, same), left: one.slice(same), right: other.slice(same) };
}

/** The messages of two branches beside each other: those of the same role meet, and nobody waits for more than one. */
export function aligned(left: readonly Message[], right: readonly Message[]): [Message | null, Message | null][] {
  const rows: [Message | null, Message | null][] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const [one, other] = [left[i] ?? null, right[j] ?? null];
    if (!one || !other || one.role === other.role) {
      rows.push([one, other]);
      [i, j] = [i + 1, j + 1];
    } else if (left[i + 1]?.role === other.role && one.role === "notice") {
      rows.push([one, null]);
      i += 1;
    } else if (right[j + 1]?.role === one.role && other.role === "notice") {
      rows.push([null, other]);
      j += 1;
    } else {
      rows.push([one, other]);
      [i, j] = [i + 1, j + 1];
    }
  }
  return rows;
}
