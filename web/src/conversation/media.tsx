/** Files of a message: pictures and sounds are shown, everything else can be fetched. */
import { useEffect, useState } from "preact/hooks";
import type { FilePart } from "@everturn/client";
import { client, toast } from "../app/app";
import { say, words } from "../app/words";
import { Button, Icon, Spinner } from "../ui/kit";
import { visible } from "./plain";

const useWords = words(
  { picture: "Picture", sound: "Sound", save: "Download", listen: "Listen", size: (kb: number) => (kb < 1024 ? `${say.number(kb)} KB` : `${say.number(Math.round(kb / 102.4) / 10)} MB`), broken: "This picture cannot be shown." },
  { picture: "图片", sound: "音频", save: "下载", listen: "播放", size: (kb: number) => (kb < 1024 ? `${say.number(kb)} KB` : `${say.number(Math.round(kb / 102.4) / 10)} MB`), broken: "无法显示这张图片。" },
);

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isPicture = (part: FilePart): boolean => PICTURES.includes(part.media_type);

export function Media({ session, part }: { session: string; part: FilePart }) {
  if (isPicture(part)) return <Picture session={session} part={part} />;
  if (/^audio\/[\w.+-]+$/.test(part.media_type)) return <Sound session={session} part={part} />;
  return <Chip session={session} part={part} />;
}

function Picture({ session, part }: { session: string; part: FilePart }) {
  const t = useWords();
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <Chip session={session} part={part} note={t.broken} />;
  const name = visible(part.name ?? "") || t.picture;
  return (
    <a class="picture-part" href={client.blobPath(session, part.blob)} target="_blank" rel="noopener" title={name}>
      <img src={client.blobPath(session, part.blob)} alt={name} loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </a>
  );
}

/** The server hands out sounds as mere bytes; they are given their type here, and only that of a sound. */
function Sound({ session, part }: { session: string; part: FilePart }) {
  const t = useWords();
  const [source, setSource] = useState("");
  const [isComing, setComing] = useState(false);
  useEffect(() => () => URL.revokeObjectURL(source), [source]);
  const listen = async () => {
    setComing(true);
    try {
      const bytes = await client.blob(session, part.blob);
      setSource(URL.createObjectURL(new Blob([bytes], { type: part.media_type })));
    } catch (error) {
      toast(error);
    }
    setComing(false);
  };
  if (source) return <audio class="sound-part" controls autoPlay src={source} />;
  return (
    <span class="file-part">
      <Button little kind="quiet" onClick={() => void listen()} disabled={isComing}>{isComing ? <Spinner /> : <Icon name="chevron" />}{t.listen}</Button>
      <span class="ellipsis">{visible(part.name ?? "") || t.sound}</span>
      <span class="muted">{t.size(Math.ceil(part.size / 1024))}</span>
    </span>
  );
}

function Chip({ session, part, note = "" }: { session: string; part: FilePart; note?: string }) {
  const t = useWords();
  const name = visible(part.name ?? "") || part.media_type;
  return (
    <a class="file-part" href={client.blobPath(session, part.blob)} download={part.name || "file"} title={note || t.save}>
      <Icon name="file" />
      <span class="ellipsis">{name}</span>
      <span class="muted">{t.size(Math.ceil(part.size / 1024))}</span>
    </a>
  );
}
