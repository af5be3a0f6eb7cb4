/** Shortest edit script of two lists of words or lines, by Myers' algorithm. Pure. */
export interface Change {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

const MAX_EDITS = 1500; // more than this and the texts have little in common

/** The edits that make `before` into `after`, one for each token; null when it would take too long. */
export function editScript(before: readonly string[], after: readonly string[], limit: number): Change[] | null {
  const { start, end, removed, added } = trim(before, after);
  const middle = removed.length + added.length > limit ? null : shortestEdits(removed, added);
  return middle && [...edits("same", before.slice(0, start)), ...middle, ...edits("same", before.slice(end))];
}

/** The edits that replace everything between the common beginning and end of both lists. */
export function replacement(before: readonly string[], after: readonly string[]): Change[] {
  const { start, end, removed, added } = trim(before, after);
  return [...edits("same", before.slice(0, start)), ...edits("removed", removed), ...edits("added", added), ...edits("same", before.slice(end))];
}

function edits(kind: Change["kind"], tokens: readonly string[]): Change[] {
  return tokens.map((text) => ({ kind, text }));
}

/** The part of both lists between their common beginning and end; `start` and `end` are its borders in `before`. */
function trim(before: readonly string[], after: readonly string[]) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const [removed, added] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  return { start, end: before.length - end, removed, added };
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
