/** Text diff: by word where the texts are short enough, by line otherwise. Pure. */
export interface Change {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

const MAX_WORDS = 6000; // of both texts, without their common beginning and end
const MAX_LINES = 40_000;
const MAX_EDITS = 1500; // more than this and the texts have little in common

/** The changes that make `before` into `after`. */
export function diff(before: string, after: string): Change[] {
  const words = editScript(splitWords(before), splitWords(after), MAX_WORDS);
  return words ?? editScript(splitLines(before), splitLines(after), MAX_LINES) ?? [
    { kind: "removed", text: before },
    { kind: "added", text: after },
  ];
}

/** Words, the spaces between them, and single characters of scripts without spaces. */
function splitWords(text: string): string[] {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_](?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}_])*|\s+|[^\s]/gu) ?? [];
}

function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/gu) ?? [];
}

/** Myers' shortest edit script; null when it would take too long. */
function editScript(before: readonly string[], after: readonly string[], limit: number): Change[] | null {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const [removed, added] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  if (removed.length + added.length > limit) return null;
  const middle = shortestEdits(removed, added);
  if (!middle) return null;
  const all: Change[] = [];
  const push = (kind: Change["kind"], text: string) => {
    const last = all.at(-1);
    if (last?.kind === kind) all[all.length - 1] = { kind, text: last.text + text };
    else if (text) all.push({ kind, text });
  };
  push("same", before.slice(0, start).join(""));
  for (const { kind, text } of middle) push(kind, text);
  push("same", before.slice(before.length - end).join(""));
  return all;
}

function shortestEdits(before: readonly string[], after: readonly string[]): Change[] | null {
  const [n, m] = [before.length, after.length];
  const limit = Math.min(n + m, MAX_EDITS);
  const trail: Int32Array[] = [];
  // furthest[k]: how far in `before` diagonal k reaches, shifted so that no index is negative
  let furthest = new Int32Array(2 * limit + 3);
  for (let count = 0; count <= limit; count += 1) {
    const next = furthest.slice();
    for (let k = -count; k <= count; k += 2) {
      const slot = k + limit + 1;
      let x = k === -count || (k !== count && furthest[slot - 1]! < furthest[slot + 1]!) ? furthest[slot + 1]! : furthest[slot - 1]! + 1;
      while (x < n && x - k < m && before[x] === after[x - k]) x += 1;
      next[slot] = x;
      if (x >= n && x - k >= m) return backtrack(before, after, [...trail, furthest], limit);
    }
    trail.push(furthest);
    furthest = next;
  }
  return null;
}

/** Backtrack from the end. `trail[count]` is the state before edit number `count`. */
function backtrack(before: readonly string[], after: readonly string[], trail: readonly Int32Array[], limit: number): Change[] {
  const found: Change[] = [];
  let [x, y] = [before.length, after.length];
  for (let count = trail.length - 1; count >= 0; count -= 1) {
    const furthest = trail[count]!;
    const k = x - y;
    const slot = k + limit + 1;
    const isDown = k === -count || (k !== count && furthest[slot - 1]! < furthest[slot + 1]!);
    const fromX = isDown ? furthest[slot + 1]! : furthest[slot - 1]!;
    const fromY = fromX - (isDown ? k + 1 : k - 1);
    const [startX, startY] = isDown ? [fromX, fromY + 1] : [fromX + 1, fromY];
    while (x > startX && y > startY && x > 0 && y > 0) {
      found.push({ kind: "same", text: before[--x]! });
      y -= 1;
    }
    if (count === 0) break;
    found.push(isDown ? { kind: "added", text: after[fromY]! } : { kind: "removed", text: before[fromX]! });
    [x, y] = [fromX, fromY];
  }
  while (x > 0 && y > 0) {
    found.push({ kind: "same", text: before[--x]! });
    y -= 1;
  }
  return found.reverse();
}
