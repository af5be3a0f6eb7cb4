/** Title of a session. */
import { firstMessageText } from "./app";

const MAX_LENGTH = 80; // characters

/** The title; before there is one, the beginning of the first message, if it is loaded. */
export function sessionTitle(session: string, title: string | undefined): string {
  if (title) return title;
  const line = firstMessageText(session).trim().split("\n", 1)[0]!;
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH).trimEnd()}…` : line;
}
