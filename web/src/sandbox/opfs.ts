/** Files in the origin's private file system. A file that is written takes its place when it is whole. */
import type { Entry, Place } from "./files";

const ROOT = "everturn-files";

export function opfs(session: string): Place {
  const top = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(ROOT, { create: true });

  async function directory(names: readonly string[], create: boolean): Promise<FileSystemDirectoryHandle> {
    let at = await (await top()).getDirectoryHandle(session, { create: true });
    for (const name of names) at = await at.getDirectoryHandle(name, { create });
    return at;
  }

  return {
    list: async (names) => {
      const found: Entry[] = [];
      for await (const handle of (await directory(names, false)).values()) found.push(await entryOf(handle));
      return found;
    },
    read: async (names) => (await (await directory(names.slice(0, -1), false)).getFileHandle(names.at(-1)!)).getFile(),
    write: async (names, content) => {
      const within = await directory(names.slice(0, -1), true);
      const writing = await (await within.getFileHandle(names.at(-1)!, { create: true })).createWritable();
      await writing.write(content);
      await writing.close();
    },
    sizes: async () => {
      const sizes = new Map<string, number>();
      await walk(await directory([], false), "", sizes);
      return sizes;
    },
    clear: async () => {
      const above = await top();
      for await (const name of above.keys()) if (name === session) await above.removeEntry(name, { recursive: true });
    },
  };
}

async function entryOf(handle: FileSystemHandle): Promise<Entry> {
  if (handle.kind === "directory") return { name: handle.name, kind: "directory" };
  return { name: handle.name, kind: "file", size: (await (handle as FileSystemFileHandle).getFile()).size };
}

async function walk(at: FileSystemDirectoryHandle, path: string, sizes: Map<string, number>): Promise<void> {
  for await (const handle of at.values()) {
    if (handle.kind === "directory") await walk(handle as FileSystemDirectoryHandle, `${path}${handle.name}/`, sizes);
    else sizes.set(path + handle.name, (await (handle as FileSystemFileHandle).getFile()).size);
  }
}
