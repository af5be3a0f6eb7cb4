/** Confirmation dialog for reverting files. */
import { useState } from "preact/hooks";
import { ServerError, type FilesPart, type RevertRecord, type SessionFollower } from "@everturn/client";
import { client, errorMessage, toast } from "../app/app";
import { format, defineTexts } from "../app/texts";
import { Button, Dialog, ErrorLine } from "../ui/components";
import { previewRevert } from "./revertPreview";

const useTexts = defineTexts(
  {
    before: "Revert to before this step?", after: "Revert to after this step?", back: "Take the revert back?",
    what: (root: string) => `The files in ${root} become what they were. As far as this conversation knows, these change:`,
    own: "this conversation", none: "No file that this conversation has changed becomes different; what was changed otherwise does.",
    others: "What was changed there by others since is put back too. Nothing is lost: the files as they are now are recorded first, and you can take this back.",
    undo: (when: string) => `The files become again what they were before the revert of ${when}. What they are now is recorded, too.`,
    go: "goes away", comes: "comes back", was: "as it was", yes: "Revert", yesBack: "Take it back", no: "Leave them", done: "The files are what they were.",
    busy: "A turn is under way. Wait until it is over, or stop it; then revert.",
    away: "Nobody answered, so it is not known whether the files were reverted. Look at them, or at this page after a reload, before you try again.",
  },
  {
    before: "恢复到此步骤之前？", after: "恢复到此步骤之后？", back: "撤回这次恢复？",
    what: (root: string) => `${root} 中的文件将恢复原状。就此对话所知，以下文件会变化：`,
    own: "此对话", none: "此对话改过的文件都不会变化；其他途径的改动会被恢复。",
    others: "此后他人在其中所做的更改也会被恢复。不会丢失任何内容：当前文件会先被记录，您可以撤回。",
    undo: (when: string) => `文件将回到${when}那次恢复之前的样子。当前的文件也会被记录。`,
    go: "将被移除", comes: "将恢复", was: "恢复原内容", yes: "恢复", yesBack: "撤回", no: "保持不变", done: "文件已恢复原状。",
    busy: "有回合正在运行。请等待其结束或先停止，再恢复。",
    away: "服务器没有应答，无法确定文件是否已恢复。重试之前，请检查文件或刷新页面查看。",
  },
);

const MAX_SHOWN = 200; // files

export function RevertDialog({ session, part, to, note, onClose }: {
  session: SessionFollower; part: FilesPart; to: "before" | "after" | "back"; note: RevertRecord | null; onClose: () => void;
}) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const files = to === "back" ? [] : previewRevert(session.state, part, to);
  const will = { go: t.go, "come back": t.comes, "be as it was": t.was };
  const tree = to === "back" ? (note?.before ?? "") : part[to];
  const revert = async () => {
    setBusy(true);
    try {
      await client.revert(session.id, { root: part.root ?? "", tree });
      toast(t.done);
      onClose();
    } catch (error) {
      setProblem(revertErrorText(error, t));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t[to]} onClose={onClose}>
      {to === "back" ? <p>{t.undo(format.ago(note?.at ?? 0))}</p> : (
        <>
          <p>{files.length ? t.what(part.root || t.own) : t.none}</p>
          {files.length > 0 && (
            <ul class="reverted-files">
              {files.slice(0, MAX_SHOWN).map((file) => (
                <li key={file.path}><code dir="ltr">{file.path}</code> <span class="small muted">{will[file.effect]}</span></li>
              ))}
              {files.length > MAX_SHOWN && <li class="small muted">… +{files.length - MAX_SHOWN}</li>}
            </ul>
          )}
          <p class="small muted">{t.others}</p>
        </>
      )}
      {problem && <ErrorLine>{problem}</ErrorLine>}
      <div class="row wrap">
        <Button autoFocus onClick={onClose}>{t.no}</Button>
        <Button kind="primary" icon="revert" disabled={isBusy} onClick={() => void revert()}>{to === "back" ? t.yesBack : t.yes}</Button>
      </div>
    </Dialog>
  );
}

function revertErrorText(error: unknown, t: ReturnType<typeof useTexts>): string {
  if (error instanceof ServerError && error.code === "session_busy") return t.busy;
  if (error instanceof ServerError && error.isAway) return t.away;
  return errorMessage(error);
}
