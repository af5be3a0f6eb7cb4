/** What a conversation is called. */
import { firstSaid } from "./app";

const LONG = 80; // characters

/** Its title; before it has one, how its first message begins, where the page knows that. */
export function titleOf(session: string, title: string | undefined): string {
  if (title) return title;
  const line = firstSaid(session).trim().split("\n", 1)[0]!;
  return line.length > LONG ? `${line.slice(0, LONG).trimEnd()}…` : line;
}
