/** Files as rows of IndexedDB, for pages that come over plain http. A directory is there while something is in it. */
import type { Entry, Place } from "./files";

const ROWS = "files";
type Row = readonly [session: string, path: string];

export function indexed(session: string): Place {
  const all = IDBKeyRange.bound([session, ""], [session, "\uffff"]);

  async function look<T>(mode: IDBTransactionMode, ask: (rows: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await open();
    try {
      const done = database.transaction(ROWS, mode);
      const asked = ask(done.objectStore(ROWS));
      await new Promise<void>((resolve, reject) => {
        done.oncomplete = () => resolve();
        done.onabort = done.onerror = () => reject(done.error ?? asked.error);
      });
      return asked.result;
    } finally {
      database.close();
    }
  }

  async function sizes(): Promise<Map<string, number>> {
    const database = await open();
    try {
      const found = new Map<string, number>();
      await new Promise<void>((resolve, reject) => {
        const walk = database.transaction(ROWS).objectStore(ROWS).openCursor(all);
        walk.onerror = () => reject(walk.error);
        walk.onsuccess = () => {
          const at = walk.result;
          if (!at) return resolve();
          found.set((at.key as unknown as Row)[1], (at.value as Blob).size);
          at.continue();
        };
      });
      return found;
    } finally {
      database.close();
    }
  }

  return {
    sizes,
    list: async (names) => {
      const within = names.length ? `${names.join("/")}/` : "";
      const found = new Map<string, Entry>();
      for (const [path, size] of await sizes()) {
        if (!path.startsWith(within)) continue;
        const [name, ...below] = path.slice(within.length).split("/");
        found.set(name!, below.length ? { name: name!, kind: "directory" } : { name: name!, kind: "file", size });
      }
      if (names.length && !found.size) throw new DOMException("", "NotFoundError");
      return [...found.values()];
    },
    read: async (names) => {
      const found = await look("readonly", (rows) => rows.get([session, names.join("/")]) as IDBRequest<Blob | undefined>);
      if (!found) throw new DOMException("", "NotFoundError");
      return found;
    },
    write: async (names, content) => {
      const paths = [...(await sizes()).keys()];
      const path = names.join("/");
      const isWithinFile = names.some((_, depth) => depth > 0 && paths.includes(names.slice(0, depth).join("/")));
      if (isWithinFile || paths.some((one) => one.startsWith(`${path}/`))) throw new DOMException("", "TypeMismatchError");
      await look("readwrite", (rows) => rows.put(content, [session, path]));
    },
    clear: async () => void (await look("readwrite", (rows) => rows.delete(all))),
  };
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("everturn-files", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(ROWS);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}
