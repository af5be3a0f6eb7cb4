/** Attachments of a result: download links, and images where nothing else shows them. */
import type { FilePart } from "@everturn/client";
import { client } from "../app/app";
import { escapeInvisible } from "../gates/invisibleChars";
import { Icon } from "../ui/components";
import { useTexts } from "../locales/attachments.gen";

const IMAGE_TYPES = /^image\/(?:png|jpeg|gif|webp|avif)$/; // no SVG: it is a document

export function Attachments({ session, files, isSeen = false }: { session: string; files: readonly FilePart[]; isSeen?: boolean }) {
  const t = useTexts();
  if (!files.length) return null;
  return (
    <ul class="attachments" aria-label={t.files}>
      {files.map((file) => {
        const name = escapeInvisible(file.name || t.file);
        const path = client.blobPath(session, file.blob);
        return (
          <li key={file.blob}>
            {!isSeen && IMAGE_TYPES.test(file.media_type) && <img src={path} alt={name} loading="lazy" />}
            <a class="button little" href={path} download={file.name || "file"}><Icon name="download" /> {name} <span class="muted">{formatSize(file.size)}</span></a>
          </li>
        );
      })}
    </ul>
  );
}

export function formatSize(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
