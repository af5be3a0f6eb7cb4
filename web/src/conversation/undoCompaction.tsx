/** Confirmation dialog for undoing a compaction. Messages below it are never lost: they stay on a branch of their own. */
import { useState } from "preact/hooks";
import type { Message, SessionFollower } from "@everturn/client";
import { attempt, client } from "../app/app";
import { countDescendants } from "../tree/branches";
import { Button, Dialog } from "../ui/components";
import { useTexts } from "../locales/undoCompaction.gen";

export function UndoCompactionDialog({ session, message, onClose }: { session: SessionFollower; message: Message; onClose: () => void }) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const descendants = countDescendants(session.state, message.id);
  const undo = async () => {
    setBusy(true);
    // To delete it would also delete what was said below it.
    const done = descendants ? client.select(session.id, { message: message.parent! }) : client.remove(session.id, message.id);
    if (await attempt(done.then(() => true))) onClose();
    else setBusy(false);
  };
  return (
    <Dialog title={t.title} onClose={onClose}>
      <p>{descendants ? t.branch(descendants) : t.whole}</p>
      <div class="row wrap">
        <Button autoFocus onClick={onClose}>{t.cancel}</Button>
        <Button kind="primary" icon="revert" disabled={isBusy} onClick={() => void undo()}>{t.undo}</Button>
      </div>
    </Dialog>
  );
}
