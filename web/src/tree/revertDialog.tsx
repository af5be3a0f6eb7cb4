/** Confirmation dialog for reverting files. */
import { useState } from "preact/hooks";
import { ServerError, type FilesPart, type RevertRecord, type SessionFollower } from "@everturn/client";
import { client, errorMessage, toast } from "../app/app";
import { format } from "../app/texts";
import { Button, Dialog, ErrorLine } from "../ui/components";
import { previewRevert } from "./revertPreview";
import { useTexts } from "../locales/revertDialog.gen";

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
