/** What a search found, made short: the words, and a little around the first of them. */
import { textOf, type Message } from "@everturn/client";

export interface Piece {
  readonly text: string;
  readonly isHit: boolean;
}

const BEFORE = 40; // characters before the first word
const LENGTH = 160;

/** All of a message that a search may have found something in, what was said first. */
export function searchable(message: Message): string {
  const more: string[] = [];
  for (const part of message.parts ?? []) {
    if (part.type === "tool") more.push(part.name, part.arguments, part.output?.text ?? "");
    else if (part.type === "notice" || part.type === "reasoning") more.push(part.text);
    else if (part.type === "file") more.push(part.name ?? "");
  }
  return [textOf(message.parts), ...more].filter(Boolean).join(" · ");
}

/** The words of a search. */
export function wordsOf(query: string): string[] {
  return query.split(/[\s"'*()]+/u).filter(Boolean);
}

/** A piece of a text around the first of some words, with all of them marked. */
export function snippet(text: string, words: readonly string[]): Piece[] {
  const flat = text.replace(/\s+/gu, " ").trim();
  const found = hits(flat, words);
  const from = Math.max(0, (found[0]?.[0] ?? 0) - BEFORE);
  const to = Math.min(flat.length, from + LENGTH);
  const pieces: Piece[] = [];
  let at = from;
  const put = (end: number, isHit: boolean) => {
    if (end > at) pieces.push({ text: flat.slice(at, end), isHit });
    at = Math.max(at, end);
  };
  for (const [start, end] of found) {
    if (start >= to) break;
    put(start, false);
    put(Math.min(end, to), true);
  }
  put(to, false);
  if (from > 0) pieces.unshift({ text: "…", isHit: false });
  if (to < flat.length) pieces.push({ text: "…", isHit: false });
  return pieces;
}

/** Where the words stand, in order and apart. */
function hits(text: string, words: readonly string[]): [number, number][] {
  const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/gu, "\\$&"));
  if (!wanted.length) return [];
  return [...text.matchAll(new RegExp(wanted.join("|"), "giu"))].map((hit) => [hit.index, hit.index + hit[0].length]);
}
