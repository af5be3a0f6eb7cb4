/** Files beside a result. Everything can be fetched; pictures are shown where nothing else shows them. */
import type { FilePart } from "@everturn/client";
import { client } from "../app/app";
import { words } from "../app/words";
import { plain } from "../gates/hidden";
import { Icon } from "../ui/kit";

const useWords = words({ files: "Attachments", file: "file" }, { files: "附件", file: "文件" });
const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif)$/; // no SVG: it is a document

export function Attachments({ session, files, isSeen = false }: { session: string; files: readonly FilePart[]; isSeen?: boolean }) {
  const t = useWords();
  if (!files.length) return null;
  return (
    <ul class="attachments" aria-label={t.files}>
      {files.map((file) => {
        const name = plain(file.name || t.file);
        const path = client.blobPath(session, file.blob);
        return (
          <li key={file.blob}>
            {!isSeen && PICTURES.test(file.media_type) && <img src={path} alt={name} loading="lazy" />}
            <a class="button little" href={path} download={file.name || "file"}><Icon name="download" /> {name} <span class="muted">{sizeOf(file.size)}</span></a>
          </li>
        );
      })}
    </ul>
  );
}

export function sizeOf(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
