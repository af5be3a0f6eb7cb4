/** A path that a model wrote → the names on the way, or why it is none. Nothing leads out of the root. */

export const LONGEST = 512; // characters of a path
export const DEEPEST = 8; // names in it
const LONGEST_NAME = 128;

/** What the model is told: a file is not there, is too large, may not be named so. */
export class FilesError extends Error {
  override name = "FilesError";
}

/** The names of a path; none for the root, where that `mayBeRoot`. */
export function namesOf(path: string, mayBeRoot = false): string[] {
  if (path.length > LONGEST) throw new FilesError(`a path has at most ${LONGEST} characters`);
  const names = path.replace(/\/$/, "").split("/");
  if (mayBeRoot && (path === "" || path === "." || path === "/")) return [];
  for (const name of names) refuse(name);
  if (names.length > DEEPEST) throw new FilesError(`a path has at most ${DEEPEST} names`);
  return names;
}

function refuse(name: string): void {
  if (name === "") throw new FilesError("a path is names with '/' between, like 'notes/today.md'; it does not begin with '/'");
  if (name === "." || name === "..") throw new FilesError("a path has no '.' and no '..'");
  if (name.length > LONGEST_NAME) throw new FilesError(`a name has at most ${LONGEST_NAME} characters`);
  // Control characters, what some file systems read as something else, and lone halves of characters.
  if (/[\u0000-\u001f\u007f-\u009f\\:*?"<>|]/.test(name) || /[\ud800-\udfff]/u.test(name)) {
    throw new FilesError(`a name has none of \\ : * ? " < > | and no control characters`);
  }
  if (/^ |[ .]$/.test(name)) throw new FilesError("a name does not begin with a space, or end with a space or a dot");
}
