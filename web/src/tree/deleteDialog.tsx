/** Confirmation dialog for deleting a message. */
import { useState } from "preact/hooks";
import { textOf, type Message, type SessionFollower } from "@everturn/client";
import { attempt, client } from "../app/app";
import { Button, Dialog } from "../ui/components";
import { countDescendants } from "./branches";
import { useTexts } from "../locales/deleteDialog.gen";

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
