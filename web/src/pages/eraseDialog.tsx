/** Confirmation dialog for erasing a session. */
import { useState } from "preact/hooks";
import type { SessionView } from "@everturn/client";
import { sessionTitle } from "../app/titles";
import { deleteFiles } from "../sandbox/tools";
import { Button, Dialog } from "../ui/components";
import { eraseSession } from "./sessions";
import { useTexts } from "../locales/eraseDialog.gen";

export function EraseDialog({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const erase = async () => {
    setBusy(true);
    if (!(await eraseSession(session.id))) return setBusy(false);
    void deleteFiles(session.id).catch(() => undefined); // a browser without files for it is fine
    onClose();
  };
  return (
    <Dialog title={t.title} onClose={onClose}>
      <p><strong dir="auto">{sessionTitle(session.id, session.title) || t.untitled}</strong></p>
      <p>{t.what}</p>
      <div class="row wrap">
        <Button autoFocus onClick={onClose}>{t.no}</Button>
        <Button kind="danger" icon="trash" disabled={isBusy} onClick={() => void erase()}>{t.yes}</Button>
      </div>
    </Dialog>
  );
}
