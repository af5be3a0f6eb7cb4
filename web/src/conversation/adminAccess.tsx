/** Open as administrator: an owner reads a private conversation for a short time. It is audited, and the author is told. */
import { useState } from "preact/hooks";
import { client, errorMessage, getSessionFollower } from "../app/app";
import { Button, Dialog, ErrorLine, Field } from "../ui/components";
import { useTexts } from "../locales/adminAccess.gen";

const MINUTES = [5, 15, 30, 60] as const;

export function AdminAccess({ session, onClose }: { session: string; onClose: () => void }) {
  const t = useTexts();
  const [reason, setReason] = useState("");
  const [minutes, setMinutes] = useState<number>(MINUTES[1]);
  const [problem, setProblem] = useState("");
  const open = async () => {
    setProblem("");
    try {
      await client.openAsAdministrator(session, { reason: reason.trim(), minutes });
    } catch (error) {
      return setProblem(errorMessage(error));
    }
    const follower = getSessionFollower(session);
    follower.pause();
    follower.start();
    onClose();
  };
  return (
    <Dialog title={t.title} onClose={onClose}>
      <p>{t.what}</p>
      <form class="fields" onSubmit={(event) => { event.preventDefault(); if (reason.trim()) void open(); }}>
        <Field label={t.reason} hint={t.told}><input class="input" maxLength={500} value={reason} onInput={(event) => setReason(event.currentTarget.value)} /></Field>
        <Field label={t.time}>
          <select class="input" value={minutes} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>{MINUTES.map((count) => <option key={count} value={count}>{t.minutes(count)}</option>)}</select>
        </Field>
        {problem && <ErrorLine>{problem}</ErrorLine>}
        <div class="row wrap"><Button onClick={onClose}>{t.cancel}</Button><Button type="submit" kind="danger" icon="eye" disabled={!reason.trim()}>{t.open}</Button></div>
      </form>
    </Dialog>
  );
}
