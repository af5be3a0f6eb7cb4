/** File uploads of the composer. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { FileView } from "@everturn/client";
import { client, errorMessage } from "../app/app";

export interface Upload {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly preview: string; // of an image: a `blob:` URL; "" otherwise
  readonly data: Blob | null; // null: it was uploaded before a reload
  readonly done: FileView | null;
  readonly problem: string;
}

let count = 0;

export interface Uploads {
  readonly all: readonly Upload[];
  readonly isBusy: boolean;
  readonly files: readonly FileView[];
  add(files: Iterable<File>): void;
  retry(id: number): void;
  remove(id: number): void;
  set(files: readonly FileView[]): void;
}

export function useUploads(first: readonly FileView[]): Uploads {
  const [all, setAll] = useState<readonly Upload[]>(() => first.map(uploadFromView));
  const now = useRef(all);
  now.current = all;
  useEffect(() => () => now.current.forEach(releasePreview), []);
  const change = (id: number, changes: Partial<Upload>) => setAll((list) => list.map((upload) => (upload.id === id ? { ...upload, ...changes } : upload)));
  const send = async (id: number, data: Blob, name: string) => {
    try {
      change(id, { done: await client.upload(data, name) });
    } catch (error) {
      change(id, { problem: errorMessage(error) });
    }
  };
  return {
    all,
    isBusy: all.some((upload) => !upload.done && !upload.problem),
    files: all.flatMap((upload) => (upload.done ? [upload.done] : [])),
    add(files) {
      const more = [...files].map((file) => ({ upload: newUpload(file), file }));
      setAll((list) => [...list, ...more.map(({ upload }) => upload)]);
      for (const { upload, file } of more) void send(upload.id, file, file.name);
    },
    retry(id) {
      const retried = now.current.find((upload) => upload.id === id);
      if (!retried?.data) return;
      change(id, { problem: "" });
      void send(id, retried.data, retried.name);
    },
    remove(id) {
      now.current.filter((upload) => upload.id === id).forEach(releasePreview);
      setAll((list) => list.filter((upload) => upload.id !== id));
    },
    set(files) {
      now.current.forEach(releasePreview);
      setAll(files.map(uploadFromView));
    },
  };
}

function newUpload(file: File): Upload {
  const preview = /^image\/(png|jpeg|gif|webp)$/.test(file.type) ? URL.createObjectURL(file) : "";
  return { id: ++count, name: file.name, type: file.type, preview, data: file, done: null, problem: "" };
}

function uploadFromView(view: FileView): Upload {
  return { id: ++count, name: view.part.name ?? "", type: view.part.media_type, preview: "", data: null, done: view, problem: "" };
}

function releasePreview(upload: Upload): void {
  if (upload.preview) URL.revokeObjectURL(upload.preview);
}
