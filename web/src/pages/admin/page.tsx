/** Frame of the sections that change settings: loading and error states, and a dialog that asks before something is deleted. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { FixedSettingView, SettingsView } from "@everturn/client";
import { attempt, refreshAgents } from "../../app/app";
import { Badge, Button, Dialog, ErrorLine, Spinner } from "../../ui/components";
import { useFetch, type Fetched } from "../../app/useFetch";
import { fetchSettings } from "./api";
import "./admin.css";
import { useTexts } from "../../locales/adminPage.gen";

export function SettingsSection({ about, children }: { about: string; children: (settings: SettingsView, reload: () => void) => ComponentChildren }) {
  const t = useTexts();
  const fetched: Fetched<SettingsView> = useFetch(fetchSettings);
  const settings = fetched.value;
  useEffect(refreshAgents, [JSON.stringify([settings?.models, settings?.agents])]); // for the pickers of agents and models
  return (
    <>
      <p class="muted">{about}</p>
      {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
      {!settings && !fetched.problem && <Spinner label={t.loading} />}
      {settings && !settings.is_editable && <p class="card">{settings.problem}</p>}
      {settings?.is_editable && children(settings, fetched.reload)}
    </>
  );
}

/** What a file or the environment defines: shown, and not changed here. */
export function Fixed({ rows }: { rows: readonly FixedSettingView[] }) {
  const t = useTexts();
  return rows.map((row) => (
    <li key={row.name} class="card">
      <div class="row wrap"><code class="name">{row.name}</code><span class="grow muted">{row.value}</span><Badge icon="lock">{t.fixed}</Badge></div>
      <p class="small muted">{t.setIn(row.where)}</p>
    </li>
  ));
}

export function DeleteButton({ name, label, what, onDelete, onDone }: { name: string; label: string; what: string; onDelete: () => Promise<unknown>; onDone: () => void }) {
  const t = useTexts();
  const [isAsking, setAsking] = useState(false);
  const remove = async () => { setAsking(false); await attempt(onDelete()); onDone(); };
  return (
    <>
      <Button icon="trash" aria-label={`${label}: ${name}`} onClick={() => setAsking(true)}>{label}</Button>
      {isAsking && (
        <Dialog title={t.sure} onClose={() => setAsking(false)}>
          <p><code>{name}</code></p>
          <p>{what}</p>
          <div class="row wrap">
            <Button autoFocus onClick={() => setAsking(false)}>{t.no}</Button>
            <Button kind="danger" icon="trash" onClick={() => void remove()}>{label}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
