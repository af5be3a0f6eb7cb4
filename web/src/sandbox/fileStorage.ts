/** File storage: the interface that OPFS and IndexedDB implement. Paths are validated and split into names. */

export interface Entry {
  readonly name: string;
  readonly kind: "file" | "directory";
  readonly size?: number;
}

export interface FileStorage {
  list(names: readonly string[]): Promise<Entry[]>;
  read(names: readonly string[]): Promise<Blob>;
  write(names: readonly string[], content: Blob): Promise<void>;
  sizes(): Promise<Map<string, number>>; // of all files, by path
  clear(): Promise<void>;
}
