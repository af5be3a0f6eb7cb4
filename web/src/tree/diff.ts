/** Text diff: by word where the texts are short enough, by line otherwise. Pure. */
import { type Change, editScript } from "../ui/editScript";

export type { Change };

const MAX_WORDS = 6000; // of both texts, without their common beginning and end
const MAX_LINES = 40_000;

/** The changes that make `before` into `after`. */
export function diff(before: string, after: string): Change[] {
  const edits = editScript(splitWords(before), splitWords(after), MAX_WORDS) ?? editScript(splitLines(before), splitLines(after), MAX_LINES);
  return edits ? joined(edits) : [
    { kind: "removed", text: before },
    { kind: "added", text: after },
  ];
}

/** Neighbours of the same kind as one change. */
function joined(edits: readonly Change[]): Change[] {
  const all: { kind: Change["kind"]; pieces: string[] }[] = [];
  for (const { kind, text } of edits) {
    const last = all.at(-1);
    if (last?.kind === kind) last.pieces.push(text);
    else if (text) all.push({ kind, pieces: [text] });
  }
  return all.map(({ kind, pieces }) => ({ kind, text: pieces.join("") }));
}

/** Words, the spaces between them, and single characters of scripts without spaces. */
function splitWords(text: string): string[] {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_](?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}_])*|\s+|[^\s]/gu) ?? [];
}

function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/gu) ?? [];
}
