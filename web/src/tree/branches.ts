/** Branch queries: leaves, versions and comparison. Pure. */
import { path, versions, type Message, type SessionState } from "@everturn/client";

/** The newest leaf under a message: the last child of the last child, and so on. */
export function newestLeaf(state: SessionState, message: string): string {
  for (let current = message; ; ) {
    const next = (state.children.get(current) ?? []).findLast((id) => !state.deleted.has(id));
    if (next === undefined) return current;
    current = next;
  }
}

/** The versions of a message that a person can choose from, oldest first; without hidden ones. */
export function visibleVersions(state: SessionState, message: Message): string[] {
  return versions(state, message).filter((id) => !state.messages.get(id)?.hidden);
}

/** The leaf of the branch that shows a message: the selected leaf if its branch contains the message. */
export function leafThrough(state: SessionState, message: string): string {
  const isSelected = state.leaf !== null && path(state).some((selected) => selected.id === message);
  return isSelected ? state.leaf! : newestLeaf(state, message);
}

/** The number of messages below one, in all branches: they are deleted with it. */
export function countDescendants(state: SessionState, message: string): number {
  let count = 0;
  const stack = [...(state.children.get(message) ?? [])];
  for (let current = stack.pop(); current !== undefined; current = stack.pop()) {
    if (state.deleted.has(current)) continue;
    if (!state.messages.get(current)?.hidden) count += 1;
    stack.push(...(state.children.get(current) ?? []));
  }
  return count;
}

/** Comparison of two branches: their common messages, and those of each alone. */
export interface BranchComparison {
  common: Message[];
  left: Message[];
  right: Message[];
}

export function compareBranches(state: SessionState, left: string, right: string): BranchComparison {
  const [leftPath, rightPath] = [path(state, left), path(state, right)];
  let same = 0;
  while (same < leftPath.length && same < rightPath.length && leftPath[same]!.id === rightPath[same]!.id) same += 1;
  return { common: leftPath.slice(0, same), left: leftPath.slice(same), right: rightPath.slice(same) };
}

/** Align the messages of two branches in rows: messages of the same role meet, and at most one row is skipped. */
export function alignMessages(left: readonly Message[], right: readonly Message[]): [Message | null, Message | null][] {
  const rows: [Message | null, Message | null][] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const [leftMessage, rightMessage] = [left[i] ?? null, right[j] ?? null];
    if (!leftMessage || !rightMessage || leftMessage.role === rightMessage.role) {
      rows.push([leftMessage, rightMessage]);
      [i, j] = [i + 1, j + 1];
    } else if (left[i + 1]?.role === rightMessage.role && leftMessage.role === "notice") {
      rows.push([leftMessage, null]);
      i += 1;
    } else if (right[j + 1]?.role === leftMessage.role && rightMessage.role === "notice") {
      rows.push([null, rightMessage]);
      j += 1;
    } else {
      rows.push([leftMessage, rightMessage]);
      [i, j] = [i + 1, j + 1];
    }
  }
  return rows;
}
