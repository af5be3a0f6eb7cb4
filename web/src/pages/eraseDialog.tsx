/** Confirmation dialog for erasing a session. */
import { useState } from "preact/hooks";
import type { SessionView } from "@everturn/client";
import { sessionTitle } from "../app/titles";
import { defineTexts } from "../app/texts";
import { deleteFiles } from "../sandbox/tools";
import { Button, Dialog } from "../ui/components";
import { eraseSession } from "./sessions";

const useTexts = defineTexts(
  {
    title: "Erase this conversation?",
    what: "Everything in it is erased for everybody: all branches, files, tool results, and what was done below it. A turn that runs is ended. This cannot be taken back; export it first if you may need it.",
    yes: "Erase for good", no: "Keep it", untitled: "Untitled conversation",
  },
  {
    title: "彻底删除这个对话？",
    what: "其中的一切都会为所有人删除：所有分支、文件、工具结果以及子任务。正在运行的回合会被终止。此操作无法撤销；如有需要请先导出。",
    yes: "彻底删除", no: "保留", untitled: "未命名对话",
  },
);

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
