/** What differs between two texts: word by word where they are short enough for that, line by line otherwise. */
export interface Change {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

const MOST_WORDS = 6000; // of both texts, beyond what is the same at their ends
const MOST_LINES = 40_000;
const MOST_EDITS = 1500; // more than this and the texts have little in common

/** The changes that make `before` into `after`. */
export function diff(before: string, after: string): Change[] {
  const words = edits(wordsOf(before), wordsOf(after), MOST_WORDS);
  return words ?? edits(linesOf(before), linesOf(after), MOST_LINES) ?? [
    { kind: "removed", text: before },
    { kind: "added", text: after },
  ];
}

/** Words, the spaces between them, and each character of scripts that write none. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_](?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}_])*|\s+|[^\s]/gu) ?? [];
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/gu) ?? [];
}

/** Myers' shortest edit script; null when it would take too long. */
function edits(before: readonly string[], after: readonly string[], most: number): Change[] | null {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const [one, other] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  if (one.length + other.length > most) return null;
  const middle = shortest(one, other);
  if (!middle) return null;
  const all: Change[] = [];
  const put = (kind: Change["kind"], text: string) => {
    const last = all.at(-1);
    if (last?.kind === kind) all[all.length - 1] = { kind, text: last.text + text };
    else if (text) all.push({ kind, text });
  };
  put("same", before.slice(0, start).join(""));
  for (const { kind, text } of middle) put(kind, text);
  put("same", before.slice(before.length - end).join(""));
  return all;
}

function shortest(before: readonly string[], after: readonly string[]): Change[] | null {
  const [n, m] = [before.length, after.length];
  const most = Math.min(n + m, MOST_EDITS);
  const trail: Int32Array[] = [];
  // furthest[k]: how far in `before` one comes on diagonal k, shifted so that no index is negative
  let furthest = new Int32Array(2 * most + 3);
  for (let count = 0; count <= most; count += 1) {
    const next = furthest.slice();
    for (let k = -count; k <= count; k += 2) {
      const at = k + most + 1;
      let x = k === -count || (k !== count && furthest[at - 1]! < furthest[at + 1]!) ? furthest[at + 1]! : furthest[at - 1]! + 1;
      while (x < n && x - k < m && before[x] === after[x - k]) x += 1;
      next[at] = x;
      if (x >= n && x - k >= m) return walked(before, after, [...trail, furthest], most);
    }
    trail.push(furthest);
    furthest = next;
  }
  return null;
}

/** From the end of the way back to its beginning. `trail[count]` is how far one was before the edit of that number. */
function walked(before: readonly string[], after: readonly string[], trail: readonly Int32Array[], most: number): Change[] {
  const found: Change[] = [];
  let [x, y] = [before.length, after.length];
  for (let count = trail.length - 1; count >= 0; count -= 1) {
    const furthest = trail[count]!;
    const k = x - y;
    const at = k + most + 1;
    const isDown = k === -count || (k !== count && furthest[at - 1]! < furthest[at + 1]!);
    const fromX = isDown ? furthest[at + 1]! : furthest[at - 1]!;
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
