/** File storage in the origin private file system (OPFS). A written file replaces the old one when it is complete. */
import type { Entry, FileStorage } from "./fileStorage";

const ROOT = "everturn-files";

export function opfsStorage(session: string): FileStorage {
  const top = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(ROOT, { create: true });

  async function directory(names: readonly string[], create: boolean): Promise<FileSystemDirectoryHandle> {
    let handle = await (await top()).getDirectoryHandle(session, { create: true });
    for (const name of names) handle = await handle.getDirectoryHandle(name, { create });
    return handle;
  }

  return {
    list: async (names) => {
      const found: Entry[] = [];
      for await (const handle of (await directory(names, false)).values()) found.push(await entryOf(handle));
      return found;
    },
    read: async (names) => (await (await directory(names.slice(0, -1), false)).getFileHandle(names.at(-1)!)).getFile(),
    write: async (names, content) => {
      const directoryHandle = await directory(names.slice(0, -1), true);
      const writable = await (await directoryHandle.getFileHandle(names.at(-1)!, { create: true })).createWritable();
      await writable.write(content);
      await writable.close();
    },
    sizes: async () => {
      const sizes = new Map<string, number>();
      await walk(await directory([], false), "", sizes);
      return sizes;
    },
    clear: async () => {
      const parent = await top();
      for await (const name of parent.keys()) if (name === session) await parent.removeEntry(name, { recursive: true });
    },
  };
}

async function entryOf(handle: FileSystemHandle): Promise<Entry> {
  if (handle.kind === "directory") return { name: handle.name, kind: "directory" };
  return { name: handle.name, kind: "file", size: (await (handle as FileSystemFileHandle).getFile()).size };
}

async function walk(directory: FileSystemDirectoryHandle, path: string, sizes: Map<string, number>): Promise<void> {
  for await (const handle of directory.values()) {
    if (handle.kind === "directory") await walk(handle as FileSystemDirectoryHandle, `${path}${handle.name}/`, sizes);
    else sizes.set(path + handle.name, (await (handle as FileSystemFileHandle).getFile()).size);
  }
}
