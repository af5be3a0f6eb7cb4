/** What a person takes out of a text before a model reads it. Pure: every change makes a new one, and can be undone. */

export const MARK = "[redacted]";

export interface Cut {
  readonly from: number;
  readonly to: number;
}

export interface Redaction {
  readonly text: string;
  readonly cuts: readonly Cut[]; // in order, apart from each other
  readonly before: Redaction | null;
}

export interface Stretch {
  readonly text: string;
  readonly at: number;
  readonly isCut: boolean;
}

export const whole = (text: string): Redaction => ({ text, cuts: [], before: null });

/** Take out what stands between two places. Half a character is taken out whole. */
export function redact(of: Redaction, from: number, to: number): Redaction {
  return withCuts(of, [...of.cuts, widened(of.text, Math.min(from, to), Math.max(from, to))]);
}

/** Take out all that reads so, wherever it stands. */
export function redactAll(of: Redaction, words: string): Redaction {
  const found = places(of, words);
  return found.length ? withCuts(of, [...of.cuts, ...found.map(({ from, to }) => widened(of.text, from, to))]) : of;
}

/** Where a text stands, outside of what is taken out already. */
export function places(of: Redaction, words: string): Cut[] {
  const found: Cut[] = [];
  if (!words) return found;
  for (let at = of.text.indexOf(words); at >= 0; at = of.text.indexOf(words, at + 1)) {
    const to = at + words.length;
    if (!of.cuts.some((cut) => cut.from <= at && to <= cut.to)) found.push({ from: at, to });
  }
  return found;
}

/** Put one back. */
export function restore(of: Redaction, index: number): Redaction {
  const cuts = of.cuts.filter((_, at) => at !== index);
  return cuts.length === of.cuts.length ? of : { text: of.text, cuts, before: of };
}

export const undo = (of: Redaction): Redaction => of.before ?? of;

/** The text in stretches; put together they are the text as it was. */
export function stretches(of: Redaction): Stretch[] {
  const found: Stretch[] = [];
  let at = 0;
  for (const { from, to } of of.cuts) {
    if (from > at) found.push({ text: of.text.slice(at, from), at, isCut: false });
    found.push({ text: of.text.slice(from, to), at: from, isCut: true });
    at = to;
  }
  if (at < of.text.length) found.push({ text: of.text.slice(at), at, isCut: false });
  return found;
}

/** What the model will read. */
export function left(of: Redaction): string {
  return stretches(of).map((one) => (one.isCut ? MARK : one.text)).join("");
}

function withCuts(of: Redaction, cuts: readonly Cut[]): Redaction {
  const joined: Cut[] = [];
  for (const cut of [...cuts].filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && cut.from <= last.to) joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, cut.to) };
    else joined.push(cut);
  }
  const isSame = joined.length === of.cuts.length && joined.every((cut, at) => cut.from === of.cuts[at]!.from && cut.to === of.cuts[at]!.to);
  return isSame ? of : { text: of.text, cuts: joined, before: of };
}

function widened(text: string, from: number, to: number): Cut {
  from = Math.max(0, Math.min(from, text.length));
  to = Math.max(0, Math.min(to, text.length));
  if (to <= from) return { from, to: from };
  if (isLow(text, from) && isHigh(text, from - 1)) from -= 1;
  if (isLow(text, to) && isHigh(text, to - 1)) to += 1;
  return { from, to };
}

const isLow = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
const isHigh = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xd800;
