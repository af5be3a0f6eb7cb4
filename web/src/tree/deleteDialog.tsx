/** Confirmation dialog for deleting a message. */
import { useState } from "preact/hooks";
import { textOf, type Message, type SessionFollower } from "@everturn/client";
import { attempt, client } from "../app/app";
import { defineTexts } from "../app/texts";
import { Button, Dialog } from "../ui/components";
import { countDescendants } from "./branches";

const useTexts = defineTexts(
  {
    title: "Delete this message?",
    alone: "It is taken out of the conversation for everybody, and no model reads it again.",
    more: (count: number) => `It and the ${count === 1 ? "message" : `${count} messages`} that follow it, in all branches, are taken out of the conversation for everybody, and no model reads them again.`,
    files: "Files that were changed stay as they are. To take everything out of the store, erase the whole conversation.",
    yes: "Delete", no: "Keep it",
  },
  {
    title: "删除这条消息？",
    alone: "它会从所有人的对话中移除，模型也不会再读到它。",
    more: (count: number) => `它以及其后所有分支中的 ${count} 条消息会从所有人的对话中移除，模型也不会再读到它们。`,
    files: "已更改的文件保持不变。若要从存储中清除一切，请彻底删除整个对话。",
    yes: "删除", no: "保留",
  },
);

const MAX_SHOWN = 200; // characters

export function DeleteDialog({ session, message, onClose }: { session: SessionFollower; message: Message; onClose: () => void }) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const descendants = countDescendants(session.state, message.id);
  const text = textOf(message.parts);
  const remove = async () => {
    setBusy(true);
    if (await attempt(client.remove(session.id, message.id).then(() => true))) onClose();
    else setBusy(false);
  };
  return (
    <Dialog title={t.title} onClose={onClose}>
      {text && <blockquote class="muted" dir="auto">{text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text}</blockquote>}
      <p>{descendants ? t.more(descendants) : t.alone}</p>
      <p class="small muted">{t.files}</p>
      <div class="row wrap">
        <Button autoFocus onClick={onClose}>{t.no}</Button>
        <Button kind="danger" icon="trash" disabled={isBusy} onClick={() => void remove()}>{t.yes}</Button>
      </div>
    </Dialog>
  );
}
