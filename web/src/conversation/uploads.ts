/** Files on their way into a message. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { FileView } from "@everturn/client";
import { client, explain } from "../app/app";

export interface Upload {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly preview: string; // of a picture: a `blob:` address; "" otherwise
  readonly data: Blob | null; // null: it was kept before the page was loaded
  readonly done: FileView | null;
  readonly problem: string;
}

let count = 0;

export interface Uploads {
  readonly all: readonly Upload[];
  readonly isBusy: boolean;
  readonly files: readonly FileView[];
  add(files: Iterable<File>): void;
  again(id: number): void;
  remove(id: number): void;
  set(files: readonly FileView[]): void;
}

export function useUploads(first: readonly FileView[]): Uploads {
  const [all, setAll] = useState<readonly Upload[]>(() => first.map(known));
  const now = useRef(all);
  now.current = all;
  useEffect(() => () => now.current.forEach(forget), []);
  const change = (id: number, some: Partial<Upload>) => setAll((list) => list.map((one) => (one.id === id ? { ...one, ...some } : one)));
  const send = async (id: number, data: Blob, name: string) => {
    try {
      change(id, { done: await client.upload(data, name) });
    } catch (error) {
      change(id, { problem: explain(error) });
    }
  };
  return {
    all,
    isBusy: all.some((one) => !one.done && !one.problem),
    files: all.flatMap((one) => (one.done ? [one.done] : [])),
    add(files) {
      const more = [...files].map((file) => ({ upload: begun(file), file }));
      setAll((list) => [...list, ...more.map(({ upload }) => upload)]);
      for (const { upload, file } of more) void send(upload.id, file, file.name);
    },
    again(id) {
      const one = now.current.find((upload) => upload.id === id);
      if (!one?.data) return;
      change(id, { problem: "" });
      void send(id, one.data, one.name);
    },
    remove(id) {
      now.current.filter((one) => one.id === id).forEach(forget);
      setAll((list) => list.filter((one) => one.id !== id));
    },
    set(files) {
      now.current.forEach(forget);
      setAll(files.map(known));
    },
  };
}

function begun(file: File): Upload {
  const preview = /^image\/(png|jpeg|gif|webp)$/.test(file.type) ? URL.createObjectURL(file) : "";
  return { id: ++count, name: file.name, type: file.type, preview, data: file, done: null, problem: "" };
}

function known(view: FileView): Upload {
  return { id: ++count, name: view.part.name ?? "", type: view.part.media_type, preview: "", data: null, done: view, problem: "" };
}

function forget(upload: Upload): void {
  if (upload.preview) URL.revokeObjectURL(upload.preview);
}
