/** Names of viewers. Pure. */
import type { ViewerView } from "@everturn/client";

/** Each user once: of an administrator, that they are one. */
export function peopleOf(all: readonly ViewerView[]): ViewerView[] {
  const found = new Map<string, ViewerView>();
  for (const viewer of all) if (!found.has(viewer.user) || viewer.is_administrator) found.set(viewer.user, viewer);
  return [...found.values()];
}

/** The first letters of the first and the last word of a name. */
export function initialsOf(name: string): string {
  const words = name.split(/[\s._@-]+/u).filter(Boolean);
  const letters = words.length > 1 ? [words[0]!, words.at(-1)!] : words;
  return letters.map((word) => [...word][0]!.toLocaleUpperCase()).join("") || "?";
}
