/** Path validation: a path from a model to its names, or an error. Nothing leads out of the root. */

export const MAX_PATH = 512; // characters of a path
export const MAX_DEPTH = 8; // names in it
const MAX_NAME = 128;

/** A file error that the model reads: not found, too large, invalid name. */
export class FilesError extends Error {
  override name = "FilesError";
}

/** Split and validate a path; the root has no names and is valid only if `mayBeRoot`. */
export function parsePath(path: string, mayBeRoot = false): string[] {
  if (path.length > MAX_PATH) throw new FilesError(`a path has at most ${MAX_PATH} characters`);
  const names = path.replace(/\/$/, "").split("/");
  if (mayBeRoot && (path === "" || path === "." || path === "/")) return [];
  for (const name of names) validateName(name);
  if (names.length > MAX_DEPTH) throw new FilesError(`a path has at most ${MAX_DEPTH} names`);
  return names;
}

function validateName(name: string): void {
  if (name === "") throw new FilesError("a path is names with '/' between, like 'notes/today.md'; it does not begin with '/'");
  if (name === "." || name === "..") throw new FilesError("a path has no '.' and no '..'");
  if (name.length > MAX_NAME) throw new FilesError(`a name has at most ${MAX_NAME} characters`);
  // Control characters, characters that some file systems treat specially, and lone surrogates.
  if (/[\u0000-\u001f\u007f-\u009f\\:*?"<>|]/.test(name) || /[\ud800-\udfff]/u.test(name)) {
    throw new FilesError(`a name has none of \\ : * ? " < > | and no control characters`);
  }
  if (/^ |[ .]$/.test(name)) throw new FilesError("a name does not begin with a space, or end with a space or a dot");
}
