/** Line diff of two texts, and parser of unified diffs. Pure. */

export interface DiffLine {
  readonly sign: "+" | "-" | " " | "@" | "h"; // h: file names and other header lines
  readonly text: string;
}

const MAX_LINES = 400; // lines of either text that are compared; longer ones are shown as replaced

/** Diff two texts by line. */
export function diff(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const lines: DiffLine[] = old.slice(0, head).map((text) => ({ sign: " ", text }));
  lines.push(...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)));
  lines.push(...old.slice(old.length - tail).map((text): DiffLine => ({ sign: " ", text })));
  return lines;
}

function middle(old: string[], now: string[]): DiffLine[] {
  const replaced = () => [...old.map((text): DiffLine => ({ sign: "-", text })), ...now.map((text): DiffLine => ({ sign: "+", text }))];
  if (old.length > MAX_LINES || now.length > MAX_LINES) return replaced();
  // The longest common subsequence, from the end.
  const size = now.length + 1;
  const best = new Uint16Array((old.length + 1) * size);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      best[i * size + j] = old[i] === now[j] ? best[(i + 1) * size + j + 1]! + 1 : Math.max(best[(i + 1) * size + j]!, best[i * size + j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ sign: " ", text: old[i++]! });
      j += 1;
    } else if (i < old.length && (j >= now.length || best[(i + 1) * size + j]! >= best[i * size + j + 1]!)) lines.push({ sign: "-", text: old[i++]! });
    else lines.push({ sign: "+", text: now[j++]! });
  }
  return lines;
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
