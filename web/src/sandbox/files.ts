/**
 * Files of a conversation, stored in this browser (in OPFS, or in IndexedDB where the context is not secure), one root per
 * session. Sandboxed code reaches them only through messages.
 *
 * Two tabs see the same files. A write is atomic, and of two the last one wins.
 */
import type { Entry, FileStorage } from "./fileStorage";
import { FilesError, parsePath } from "./paths";

export interface Files {
  list(path: string): Promise<Entry[]>;
  read(path: string): Promise<string>;
  write(path: string, content: string): Promise<number>; // bytes
  clear(): Promise<void>;
}

export const LIMITS = { file: 1_000_000, all: 20_000_000, files: 1000 };

/** Open the files of a session, in the best storage of this browser. */
export async function openFiles(session: string): Promise<Files> {
  const hasOpfs = isSecureContext && "createWritable" in (globalThis.FileSystemFileHandle?.prototype ?? {});
  return limitedFiles(hasOpfs ? (await import("./opfs")).opfsStorage(session) : (await import("./indexedDb")).indexedDbStorage(session), session);
}

/** Add the limits to a storage. */
export function limitedFiles(storage: FileStorage, session: string): Files {
  return {
    list: async (path) => (await describeErrors(storage.list(parsePath(path, true)))).sort((a, b) => (a.name < b.name ? -1 : 1)),
    read: async (path) => (await describeErrors(storage.read(parsePath(path)))).text(),
    write: async (path, content) => {
      const names = parsePath(path);
      const blob = new Blob([content]);
      if (blob.size > LIMITS.file) throw new FilesError(`a file has at most ${LIMITS.file} bytes, and this one ${blob.size}`);
      await withLock(session, async () => {
        const sizes = await describeErrors(storage.sizes());
        sizes.set(names.join("/"), blob.size);
        const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
        if (all > LIMITS.all) throw new FilesError(`all files have at most ${LIMITS.all} bytes; with this they would have ${all}`);
        if (sizes.size > LIMITS.files) throw new FilesError(`there are at most ${LIMITS.files} files`);
        await describeErrors(storage.write(names, blob));
      });
      return blob.size;
    },
    clear: () => withLock(session, () => describeErrors(storage.clear())),
  };
}

/** Run exclusively, across tabs where the browser has locks, so that the sizes counted are the sizes written. */
const withLock = <T>(session: string, run: () => Promise<T>): Promise<T> =>
  globalThis.navigator?.locks ? (navigator.locks.request(`everturn-files-${session}`, run) as Promise<T>) : run();

const ERROR_TEXTS: Record<string, string> = {
  NotFoundError: "there is no such file or directory",
  TypeMismatchError: "that is a directory where a file is meant, or a file where a directory is meant",
  QuotaExceededError: "this browser gives no more room for files",
  NoModificationAllowedError: "this file is being written by another tab; try again",
  InvalidStateError: "this browser keeps no files for this page, as in a private window",
  SecurityError: "this browser keeps no files for this page, as in a private window",
};

/** Turn browser errors into texts that a model can act on. */
async function describeErrors<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    const why = error instanceof DOMException ? ERROR_TEXTS[error.name] : undefined;
    throw why ? new FilesError(why) : error;
  }
}
