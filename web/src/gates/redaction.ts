/** Redaction of a result before a model reads it. Pure: every change makes a new value, and can be undone. */

export const REDACTED = "[redacted]";

export interface Cut {
  readonly from: number;
  readonly to: number;
}

export interface Redaction {
  readonly text: string;
  readonly cuts: readonly Cut[]; // in order, not overlapping
  readonly before: Redaction | null;
}

export interface Segment {
  readonly text: string;
  readonly at: number;
  readonly isCut: boolean;
}

export const unredacted = (text: string): Redaction => ({ text, cuts: [], before: null });

/** Redact a range. Half a character is redacted whole. */
export function redact(of: Redaction, from: number, to: number): Redaction {
  return withCuts(of, [...of.cuts, expandToCharacters(of.text, Math.min(from, to), Math.max(from, to))]);
}

/** Redact every occurrence of a text. */
export function redactAll(of: Redaction, words: string): Redaction {
  const found = occurrences(of, words);
  return found.length ? withCuts(of, [...of.cuts, ...found.map(({ from, to }) => expandToCharacters(of.text, from, to))]) : of;
}

/** Occurrences of a text, outside of what is redacted already. */
export function occurrences(of: Redaction, words: string): Cut[] {
  const found: Cut[] = [];
  if (!words) return found;
  for (let position = of.text.indexOf(words); position >= 0; position = of.text.indexOf(words, position + 1)) {
    const to = position + words.length;
    if (!of.cuts.some((cut) => cut.from <= position && to <= cut.to)) found.push({ from: position, to });
  }
  return found;
}

/** Restore one cut. */
export function restore(of: Redaction, index: number): Redaction {
  const cuts = of.cuts.filter((_, cutIndex) => cutIndex !== index);
  return cuts.length === of.cuts.length ? of : { text: of.text, cuts, before: of };
}

export const undo = (of: Redaction): Redaction => of.before ?? of;

/** The text in segments; joined they are the original text. */
export function segments(of: Redaction): Segment[] {
  const found: Segment[] = [];
  let position = 0;
  for (const { from, to } of of.cuts) {
    if (from > position) found.push({ text: of.text.slice(position, from), at: position, isCut: false });
    found.push({ text: of.text.slice(from, to), at: from, isCut: true });
    position = to;
  }
  if (position < of.text.length) found.push({ text: of.text.slice(position), at: position, isCut: false });
  return found;
}

/** The text that the model will read. */
export function redactedText(of: Redaction): string {
  return segments(of).map((segment) => (segment.isCut ? REDACTED : segment.text)).join("");
}

function withCuts(of: Redaction, cuts: readonly Cut[]): Redaction {
  const joined: Cut[] = [];
  for (const cut of [...cuts].filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && cut.from <= last.to) joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, cut.to) };
    else joined.push(cut);
  }
  const isSame = joined.length === of.cuts.length && joined.every((cut, index) => cut.from === of.cuts[index]!.from && cut.to === of.cuts[index]!.to);
  return isSame ? of : { text: of.text, cuts: joined, before: of };
}

function expandToCharacters(text: string, from: number, to: number): Cut {
  from = Math.max(0, Math.min(from, text.length));
  to = Math.max(0, Math.min(to, text.length));
  if (to <= from) return { from, to: from };
  if (isLow(text, from) && isHigh(text, from - 1)) from -= 1;
  if (isLow(text, to) && isHigh(text, to - 1)) to += 1;
  return { from, to };
}

const isLow = (text: string, index: number) => (text.charCodeAt(index) & 0xfc00) === 0xdc00;
const isHigh = (text: string, index: number) => (text.charCodeAt(index) & 0xfc00) === 0xd800;
