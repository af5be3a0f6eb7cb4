/** Media parts of a message: images and audio are shown, other files are links. */
import { useEffect, useState } from "preact/hooks";
import type { FilePart } from "@everturn/client";
import { client, toast } from "../app/app";
import { format } from "../app/texts";
import { lazy } from "../app/lazy";
import { DocumentAmount } from "./documentAmount";
import { Button, Icon, Spinner } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/media.gen";

const DocumentDialog = lazy(async () => (await import("./documentDialog")).DocumentDialog);

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isImage = (part: FilePart): boolean => IMAGE_TYPES.includes(part.media_type);

export function Media({ session, part }: { session: string; part: FilePart }) {
  if (isImage(part)) return <ImagePart session={session} part={part} />;
  if (/^audio\/[\w.+-]+$/.test(part.media_type)) return <AudioPart session={session} part={part} />;
  return <FileChip session={session} part={part} />;
}

function ImagePart({ session, part }: { session: string; part: FilePart }) {
  const t = useTexts();
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <FileChip session={session} part={part} note={t.broken} />;
  const name = showControls(part.name ?? "") || t.picture;
  return (
    <a class="picture-part" href={client.blobPath(session, part.blob)} target="_blank" rel="noopener" title={name}>
      <img src={client.blobPath(session, part.blob)} alt={name} loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </a>
  );
}

/** The server sends audio as plain bytes; it gets its media type here, and only an audio type. */
function AudioPart({ session, part }: { session: string; part: FilePart }) {
  const t = useTexts();
  const [source, setSource] = useState("");
  const [isLoading, setLoading] = useState(false);
  useEffect(() => () => URL.revokeObjectURL(source), [source]);
  const listen = async () => {
    setLoading(true);
    try {
      const bytes = await client.blob(session, part.blob);
      setSource(URL.createObjectURL(new Blob([bytes], { type: part.media_type })));
    } catch (error) {
      toast(error);
    }
    setLoading(false);
  };
  if (source) return <audio class="sound-part" controls autoPlay src={source} />;
  return (
    <span class="file-part">
      <Button little kind="quiet" onClick={() => void listen()} disabled={isLoading}>{isLoading ? <Spinner /> : <Icon name="chevron" />}{t.listen}</Button>
      <span class="ellipsis">{showControls(part.name ?? "") || t.sound}</span>
      <span class="muted">{format.bytes(part.size)}</span>
    </span>
  );
}

function FileChip({ session, part, note = "" }: { session: string; part: FilePart; note?: string }) {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  const name = showControls(part.name ?? "") || part.media_type;
  return (
    <>
      <a class="file-part" href={client.blobPath(session, part.blob)} download={part.name || "file"} title={note || t.save}>
        <Icon name="file" />
        <span class="ellipsis">{name}</span>
        <DocumentAmount part={part} />
        <span class="muted">{format.bytes(part.size)}</span>
      </a>
      {part.text && <Button little kind="quiet" aria-label={t.read(name)} aria-haspopup="dialog" onClick={() => setOpen(true)}>{t.text}</Button>}
      {isOpen && <DocumentDialog session={session} part={part} onClose={() => setOpen(false)} />}
    </>
  );
}
