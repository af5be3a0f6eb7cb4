/** Sessions section: quarantined sessions, to retry, cancel or erase them, and how long sessions are kept. */
import { useState } from "preact/hooks";
import type { QuarantinedSession } from "@everturn/client";
import { attempt, toast } from "../../app/app";
import { format } from "../../app/texts";
import { Button, Dialog } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { DataTable, Loaded } from "./parts";
import { cancelSession, eraseSession, fetchQuarantine, retrySession } from "./peopleApi";
import { useTexts } from "../../locales/adminQuarantine.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

export function Quarantine() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchQuarantine);
  const [erased, setErased] = useState<QuarantinedSession | null>(null);
  const retry = async ({ id }: QuarantinedSession) => {
    if ((await attempt(retrySession(id).then(() => true)))) toast(t.retried);
    fetched.reload();
  };
  const cancel = async ({ id }: QuarantinedSession) => {
    const done = await attempt(cancelSession(id));
    if (done) toast(t.cancelled(done.turns));
    fetched.reload();
  };
  const erase = async ({ id }: QuarantinedSession) => {
    await attempt(eraseSession(id));
    setErased(null);
    fetched.reload();
  };
  return (
    <>
      <p class="muted">{t.about}</p>
      <Loaded of={fetched}>{({ sessions, retention_days, temporary_hours }) => (
        <>
          {sessions.length === 0 ? <p class="card">{t.none}</p> : (
            <DataTable label={a.quarantine} head={[a.id, t.author, t.agent, t.reason, t.turns, a.action]}>
              {sessions.map((row) => (
                <tr key={row.id}>
                  <th scope="row"><code>{row.id}</code><div class="small muted">{format.ago(row.updated)}</div></th>
                  <td><bdi>{row.by}</bdi></td>
                  <td><bdi>{row.agent}</bdi></td>
                  <td class="wide">{row.reason.replace(`session ${row.id} `, "")}</td>
                  <td class="number">{row.open_turns}</td>
                  <td>
                    <div class="row wrap">
                      <Button little onClick={() => void retry(row)}>{t.retry}</Button>
                      {row.open_turns > 0 && <Button little onClick={() => void cancel(row)}>{t.cancel}</Button>}
                      <Button little kind="danger" onClick={() => setErased(row)}>{t.erase}</Button>
                    </div>
                  </td>
                </tr>
              ))}
            </DataTable>
          )}
          <section class="card">
            <h2>{t.retention}</h2>
            <p>{retention_days ? t.kept(retention_days) : t.forever} {t.temporary(temporary_hours)}</p>
            <p class="small muted">{t.where}</p>
          </section>
        </>
      )}</Loaded>
      {erased && (
        <Dialog title={t.sureErase} onClose={() => setErased(null)}>
          <p><code>{erased.id}</code></p>
          <p>{t.eraseWhat}</p>
          <div class="row wrap">
            <Button autoFocus onClick={() => setErased(null)}>{a.cancel}</Button>
            <Button kind="danger" icon="trash" onClick={() => void erase(erased)}>{t.yesErase}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
