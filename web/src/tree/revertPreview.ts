/** Revert preview: what a revert would do to files. Pure. */
import type { FileChange, FilesPart, RevertRecord, SessionState } from "@everturn/client";

/** A file, and the effect of the revert on it. */
export interface RevertedFile {
  readonly path: string;
  readonly effect: "come back" | "go" | "be as it was";
}

const rootOf = (part: FilesPart) => part.root ?? "";

/** All file changes below a root, in the order of turns and steps. */
function fileHistory(state: SessionState, root: string): FilesPart[] {
  const answers = [...state.messages.values()].map((message) => ({ message, at: state.turns.get(message.turn ?? "")?.started ?? 0 }));
  const parts = answers.sort((a, b) => a.at - b.at).flatMap(({ message }) => message.parts ?? []);
  return parts.filter((part): part is FilesPart => part.type === "files" && rootOf(part) === root);
}

/** The files that changed in a step and since, and the effect of a revert; with `after`, since the step alone. */
export function previewRevert(state: SessionState, part: FilesPart, to: "before" | "after"): RevertedFile[] {
  if (currentTree(state, rootOf(part)) === part[to]) return [];
  const all = fileHistory(state, rootOf(part));
  const index = all.findIndex((candidate) => candidate.before === part.before && candidate.after === part.after && candidate.step === part.step);
  const undone = index < 0 ? [part] : all.slice(to === "before" ? index : index + 1);
  const first = new Map<string, FileChange["kind"]>();
  for (const step of undone) for (const { path, kind } of step.changes ?? []) if (!first.has(path)) first.set(path, kind);
  const effects = { added: "go", deleted: "come back", modified: "be as it was" } as const;
  return [...first].map(([path, kind]) => ({ path, effect: effects[kind] })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The current tree of the files below a root, as far as this session has changed them. */
export function currentTree(state: SessionState, root: string): string {
  const revert = state.reverts.findLast((candidate) => candidate.root === root);
  const last = fileHistory(state, root).at(-1);
  // Files are reverted between turns only, so the start of the turn says which came later.
  return revert && revert.at >= startOf(state, last) ? revert.after : (last?.after ?? "");
}

function startOf(state: SessionState, part: FilesPart | undefined): number {
  for (const message of part ? state.messages.values() : []) {
    if (message.parts?.includes(part!)) return state.turns.get(message.turn ?? "")?.started ?? 0;
  }
  return 0;
}

/** The last revert below a root, at the one step that shows it: the step it undid, or else the step it went back to. */
export function revertShownAt(state: SessionState, part: FilesPart): RevertRecord | null {
  const last = state.reverts.findLast((revert) => revert.root === rootOf(part));
  if (!last) return null;
  const all = fileHistory(state, rootOf(part));
  const shownAt = all.findLast((candidate) => candidate.before === last.after) ?? all.findLast((candidate) => candidate.after === last.after);
  return shownAt === part ? last : null;
}
