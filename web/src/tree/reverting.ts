/** What a revert would do to files, told before it is done. */
import type { FileChange, FilesPart, RevertNote, SessionState } from "@everturn/client";

/** A file, and what would become of it. */
export interface Becoming {
  readonly path: string;
  readonly will: "come back" | "go" | "be as it was";
}

const rootOf = (part: FilesPart) => part.root ?? "";

/** All that happened to the files beneath a root, in the order of turns and steps. */
function history(state: SessionState, root: string): FilesPart[] {
  const answers = [...state.messages.values()].map((message) => ({ message, at: state.turns.get(message.turn ?? "")?.started ?? 0 }));
  const parts = answers.sort((a, b) => a.at - b.at).flatMap(({ message }) => message.parts ?? []);
  return parts.filter((part): part is FilesPart => part.type === "files" && rootOf(part) === root);
}

/** The files that were changed by a step and since, and what they would be; with `after`, since the step alone. */
export function becoming(state: SessionState, part: FilesPart, to: "before" | "after"): Becoming[] {
  if (treeNow(state, rootOf(part)) === part[to]) return [];
  const all = history(state, rootOf(part));
  const at = all.findIndex((one) => one.before === part.before && one.after === part.after && one.step === part.step);
  const undone = at < 0 ? [part] : all.slice(to === "before" ? at : at + 1);
  const first = new Map<string, FileChange["kind"]>();
  for (const one of undone) for (const { path, kind } of one.changes ?? []) if (!first.has(path)) first.set(path, kind);
  const will = { added: "go", deleted: "come back", modified: "be as it was" } as const;
  return [...first].map(([path, kind]) => ({ path, will: will[kind] })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The tree that the files beneath a root are now, as far as this session has changed them. */
export function treeNow(state: SessionState, root: string): string {
  const revert = state.reverts.findLast((one) => one.root === root);
  const last = history(state, root).at(-1);
  // Files are reverted between turns only, so the turn's beginning says which came later.
  return revert && revert.at >= startOf(state, last) ? revert.after : (last?.after ?? "");
}

function startOf(state: SessionState, part: FilesPart | undefined): number {
  for (const message of part ? state.messages.values() : []) {
    if (message.parts?.includes(part!)) return state.turns.get(message.turn ?? "")?.started ?? 0;
  }
  return 0;
}

/** The last revert beneath a root, at the one step where it is told: that which it undid, or else that which it went back to. */
export function revertTo(state: SessionState, part: FilesPart): RevertNote | null {
  const last = state.reverts.findLast((one) => one.root === rootOf(part));
  if (!last) return null;
  const all = history(state, rootOf(part));
  const place = all.findLast((one) => one.before === last.after) ?? all.findLast((one) => one.after === last.after);
  return place === part ? last : null;
}
