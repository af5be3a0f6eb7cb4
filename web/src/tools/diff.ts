/** Line diff of two texts, and parser of unified diffs. Pure. */
import { editScript, replacement } from "../ui/editScript";

export interface DiffLine {
  readonly sign: "+" | "-" | " " | "@" | "h"; // h: file names and other header lines
  readonly text: string;
}

const MAX_LINES = 40_000; // lines that differ, of both texts; more are shown as replaced
const SIGNS = { same: " ", added: "+", removed: "-" } as const;

/** Diff two texts by line. */
export function diff(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const edits = editScript(old, now, MAX_LINES) ?? replacement(old, now);
  return edits.map(({ kind, text }): DiffLine => ({ sign: SIGNS[kind], text }));
}

/** Whether a text is a unified diff. */
export function isDiff(text: string): boolean {
  return /^--- .*\n\+\+\+ .*(\n|$)/.test(text) || /^@@ -\d+/m.test(text);
}

/** Parse a unified diff by line, with nothing left out. */
export function readDiff(text: string): DiffLine[] {
  let isInHunk = false;
  return text.replace(/\n$/, "").split("\n").map((line): DiffLine => {
    if (line.startsWith("@@")) {
      isInHunk = true;
      return { sign: "@", text: line };
    }
    if (!isInHunk && (line.startsWith("--- ") || line.startsWith("+++ "))) return { sign: "h", text: line };
    const sign = line[0];
    if (isInHunk && (sign === "+" || sign === "-" || sign === " ")) return { sign, text: line.slice(1) };
    return { sign: "h", text: line };
  });
}
