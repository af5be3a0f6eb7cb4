/** File storage in IndexedDB, for pages over plain http. A directory exists while it has files. */
import type { Entry, FileStorage } from "./fileStorage";

const STORE = "files";
type RowKey = readonly [session: string, path: string];

export function indexedDbStorage(session: string): FileStorage {
  const all = IDBKeyRange.bound([session, ""], [session, "\uffff"]);

  async function transact<T>(mode: IDBTransactionMode, ask: (rows: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await openDatabase();
    try {
      const done = database.transaction(STORE, mode);
      const request = ask(done.objectStore(STORE));
      await new Promise<void>((resolve, reject) => {
        done.oncomplete = () => resolve();
        done.onabort = done.onerror = () => reject(done.error ?? request.error);
      });
      return request.result;
    } finally {
      database.close();
    }
  }

  async function sizes(): Promise<Map<string, number>> {
    const database = await openDatabase();
    try {
      const found = new Map<string, number>();
      await new Promise<void>((resolve, reject) => {
        const walk = database.transaction(STORE).objectStore(STORE).openCursor(all);
        walk.onerror = () => reject(walk.error);
        walk.onsuccess = () => {
          const cursor = walk.result;
          if (!cursor) return resolve();
          found.set((cursor.key as unknown as RowKey)[1], (cursor.value as Blob).size);
          cursor.continue();
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
      const prefix = names.length ? `${names.join("/")}/` : "";
      const found = new Map<string, Entry>();
      for (const [path, size] of await sizes()) {
        if (!path.startsWith(prefix)) continue;
        const [name, ...deeper] = path.slice(prefix.length).split("/");
        found.set(name!, deeper.length ? { name: name!, kind: "directory" } : { name: name!, kind: "file", size });
      }
      if (names.length && !found.size) throw new DOMException("", "NotFoundError");
      return [...found.values()];
    },
    read: async (names) => {
      const found = await transact("readonly", (rows) => rows.get([session, names.join("/")]) as IDBRequest<Blob | undefined>);
      if (!found) throw new DOMException("", "NotFoundError");
      return found;
    },
    write: async (names, content) => {
      const paths = [...(await sizes()).keys()];
      const path = names.join("/");
      const isWithinFile = names.some((_, depth) => depth > 0 && paths.includes(names.slice(0, depth).join("/")));
      if (isWithinFile || paths.some((other) => other.startsWith(`${path}/`))) throw new DOMException("", "TypeMismatchError");
      await transact("readwrite", (rows) => rows.put(content, [session, path]));
    },
    clear: async () => void (await transact("readwrite", (rows) => rows.delete(all))),
  };
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("everturn-files", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
