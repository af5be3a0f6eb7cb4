/** Search snippets: an excerpt of a message around the first hit, with all hits marked. */
import { textOf, type Message } from "@everturn/client";

export interface SnippetPiece {
  readonly text: string;
  readonly isHit: boolean;
}

const CONTEXT_BEFORE = 40; // characters before the first hit
const SNIPPET_LENGTH = 160;

/** The searchable text of a message, its own text first. */
export function searchableText(message: Message): string {
  const more: string[] = [];
  for (const part of message.parts ?? []) {
    if (part.type === "tool") more.push(part.name, part.arguments, part.output?.text ?? "");
    else if (part.type === "notice" || part.type === "reasoning") more.push(part.text);
    else if (part.type === "provider_tool") more.push(part.title ?? "", part.text ?? "");
    else if (part.type === "context") more.push(part.title ?? "", part.text);
    else if (part.type === "file") more.push(part.name ?? "");
  }
  return [textOf(message.parts), ...more].filter(Boolean).join(" · ");
}

/** The terms of a query. */
export function queryTerms(query: string): string[] {
  return query.split(/[\s"'*()]+/u).filter(Boolean);
}

/** An excerpt around the first hit of the terms, with all hits marked. */
export function makeSnippet(text: string, words: readonly string[]): SnippetPiece[] {
  const flat = text.replace(/\s+/gu, " ").trim();
  const found = findHits(flat, words);
  const from = Math.max(0, (found[0]?.[0] ?? 0) - CONTEXT_BEFORE);
  const to = Math.min(flat.length, from + SNIPPET_LENGTH);
  const pieces: SnippetPiece[] = [];
  let position = from;
  const push = (end: number, isHit: boolean) => {
    if (end > position) pieces.push({ text: flat.slice(position, end), isHit });
    position = Math.max(position, end);
  };
  for (const [start, end] of found) {
    if (start >= to) break;
    push(start, false);
    push(Math.min(end, to), true);
  }
  push(to, false);
  if (from > 0) pieces.unshift({ text: "…", isHit: false });
  if (to < flat.length) pieces.push({ text: "…", isHit: false });
  return pieces;
}

/** Positions of the hits, in order and not overlapping. */
function findHits(text: string, words: readonly string[]): [number, number][] {
  const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/gu, "\\$&"));
  if (!wanted.length) return [];
  return [...text.matchAll(new RegExp(wanted.join("|"), "giu"))].map((hit) => [hit.index, hit.index + hit[0].length]);
}
