/**
 * The files of a conversation that stay in this browser. They are kept by the origin (OPFS, or IndexedDB where a page is not
 * secure enough for that), one root for each session, and reached by code only through messages.
 *
 * Two tabs see the same files. A write is whole or not at all, and of two the last one stays.
 */
import { FilesError, namesOf } from "./paths";

export interface Entry {
  readonly name: string;
  readonly kind: "file" | "directory";
  readonly size?: number;
}

export interface Files {
  list(path: string): Promise<Entry[]>;
  read(path: string): Promise<string>;
  write(path: string, content: string): Promise<number>; // bytes
  clear(): Promise<void>;
}

/** Where files are kept: what a place has to do, checked paths in. */
export interface Place {
  list(names: readonly string[]): Promise<Entry[]>;
  read(names: readonly string[]): Promise<Blob>;
  write(names: readonly string[], content: Blob): Promise<void>;
  sizes(): Promise<Map<string, number>>; // of all files, by path
  clear(): Promise<void>;
}

export const LIMITS = { file: 1_000_000, all: 20_000_000, files: 1000 };

/** The files of a session, in the best place that this browser has. */
export async function filesOf(session: string): Promise<Files> {
  const hasOpfs = isSecureContext && "createWritable" in (globalThis.FileSystemFileHandle?.prototype ?? {});
  return within(hasOpfs ? (await import("./opfs")).opfs(session) : (await import("./indexed")).indexed(session), session);
}

/** A place, with the rules that hold wherever it is. */
export function within(place: Place, session: string): Files {
  return {
    list: async (path) => (await told(place.list(namesOf(path, true)))).sort((a, b) => (a.name < b.name ? -1 : 1)),
    read: async (path) => (await told(place.read(namesOf(path)))).text(),
    write: async (path, content) => {
      const names = namesOf(path);
      const blob = new Blob([content]);
      if (blob.size > LIMITS.file) throw new FilesError(`a file has at most ${LIMITS.file} bytes, and this one ${blob.size}`);
      await alone(session, async () => {
        const sizes = await told(place.sizes());
        sizes.set(names.join("/"), blob.size);
        const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
        if (all > LIMITS.all) throw new FilesError(`all files have at most ${LIMITS.all} bytes; with this they would have ${all}`);
        if (sizes.size > LIMITS.files) throw new FilesError(`there are at most ${LIMITS.files} files`);
        await told(place.write(names, blob));
      });
      return blob.size;
    },
    clear: () => alone(session, () => told(place.clear())),
  };
}

/** One after the other, in all tabs where the browser can do that. What is counted is then what is written. */
const alone = <T>(session: string, run: () => Promise<T>): Promise<T> =>
  globalThis.navigator?.locks ? (navigator.locks.request(`everturn-files-${session}`, run) as Promise<T>) : run();

const WHY: Record<string, string> = {
  NotFoundError: "there is no such file or directory",
  TypeMismatchError: "that is a directory where a file is meant, or a file where a directory is meant",
  QuotaExceededError: "this browser gives no more room for files",
  NoModificationAllowedError: "this file is being written by another tab; try again",
  InvalidStateError: "this browser keeps no files for this page, as in a private window",
  SecurityError: "this browser keeps no files for this page, as in a private window",
};

/** Failures in words that a model can act on. */
async function told<T>(deed: Promise<T>): Promise<T> {
  try {
    return await deed;
  } catch (error) {
    const why = error instanceof DOMException ? WHY[error.name] : undefined;
    throw why ? new FilesError(why) : error;
  }
}
