/** Models page: keys of vendors (write-only), and the models that are offered. */
import { useState } from "preact/hooks";
import type { KeyTestView, ModelKeyView, ModelSettingsView, SettingsView } from "@everturn/client";
import { attempt } from "../../app/app";
import { format } from "../../app/texts";
import { Badge, Button, Disclosure, Field } from "../../ui/components";
import { deleteKey, deleteModel, putKey, putModel, testKey } from "./api";
import { SettingsSection, DeleteButton, Fixed } from "./page";
import { useTexts } from "../../locales/adminModels.gen";

export function Models() {
  const t = useTexts();
  return <SettingsSection about={t.about}>{(settings, reload) => <><Keys settings={settings} reload={reload} /><OfferedModels settings={settings} reload={reload} /></>}</SettingsSection>;
}

interface Part { settings: SettingsView; reload: () => void }

function Keys({ settings, reload }: Part) {
  const t = useTexts();
  const [edited, setEdited] = useState<string | null>(null);
  const fixed = settings.fixed.filter((row) => row.kind === "key");
  const taken = new Set([...fixed.map((row) => row.name), ...settings.keys.map((row) => row.vendor)]);
  const free = settings.vendors.filter((vendor) => !taken.has(vendor));
  const done = () => { setEdited(null); reload(); };
  return (
    <>
      <header class="row wrap">
        <h2 class="grow">{t.keys}</h2>
        {edited === null && !settings.secret_problem && <Button icon="add" onClick={() => setEdited("")}>{t.addKey}</Button>}
      </header>
      <p class="muted">{t.keysAbout}</p>
      {settings.secret_problem && <p class="card attention">{settings.secret_problem}</p>}
      {edited === "" && <KeyEditor vendors={free} onDone={done} onCancel={() => setEdited(null)} />}
      {settings.keys.length + fixed.length === 0 && edited === null && <p class="card">{t.noKeys}</p>}
      <ul class="items">
        {settings.keys.map((row) => (
          <li key={row.vendor} class="card">
            {edited === row.vendor ? <KeyEditor vendors={[row.vendor]} onDone={done} onCancel={() => setEdited(null)} /> : <StoredKey view={row} onReplace={() => setEdited(row.vendor)} reload={reload} />}
          </li>
        ))}
        <Fixed rows={fixed} />
      </ul>
    </>
  );
}

function StoredKey({ view, onReplace, reload }: { view: ModelKeyView; onReplace: () => void; reload: () => void }) {
  const t = useTexts();
  const [tested, setTested] = useState<KeyTestView | null>(null);
  const [isBusy, setBusy] = useState(false);
  const test = async () => { setBusy(true); setTested((await attempt(testKey(view.vendor))) ?? null); setBusy(false); };
  return (
    <>
      <div class="row wrap"><span class="name">{view.vendor}</span><code class="grow muted">{view.last_four ? `…${view.last_four}` : view.fingerprint}</code></div>
      <p class="small muted">{t.storedBy(view.by, format.moment(view.at))}</p>
      {view.problem && <p class="small attention">{view.problem}</p>}
      <div class="row wrap">
        <Button icon="check" disabled={isBusy} aria-label={`${t.test}: ${view.vendor}`} onClick={() => void test()}>{t.test}</Button>
        <Button icon="edit" aria-label={`${t.replace}: ${view.vendor}`} onClick={onReplace}>{t.replace}</Button>
        <DeleteButton name={view.vendor} label={t.remove} what={t.removeKey} onDelete={() => deleteKey(view.vendor)} onDone={reload} />
      </div>
      <div aria-live="polite">
        {tested && (tested.problem ? <p class="small attention">{tested.problem}</p> : <Disclosure summary={<span class="small">{t.works(tested.models.length)}</span>}><p class="small"><code>{tested.models.join(", ")}</code></p></Disclosure>)}
      </div>
    </>
  );
}

function KeyEditor({ vendors, onDone, onCancel }: { vendors: readonly string[]; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const [vendor, setVendor] = useState(vendors[0] ?? "");
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    const stored = await attempt(putKey(vendor, key.trim()));
    setBusy(false);
    if (stored) onDone();
  };
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        <Field label={t.vendor}><select class="input" value={vendor} onChange={(event) => setVendor(event.currentTarget.value)}>{vendors.map((name) => <option key={name}>{name}</option>)}</select></Field>
        <Field label={t.key}><input class="input" type="password" autocomplete="off" spellcheck={false} required autoFocus maxLength={4096} value={key} onInput={(event) => setKey(event.currentTarget.value)} /></Field>
      </div>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !key.trim() || !vendor}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}

function OfferedModels({ settings, reload }: Part) {
  const t = useTexts();
  const [edited, setEdited] = useState<ModelSettingsView | "new" | null>(null);
  const fixed = settings.fixed.filter((row) => row.kind === "model");
  const done = () => { setEdited(null); reload(); };
  return (
    <>
      <header class="row wrap">
        <h2 class="grow">{t.models}</h2>
        {!edited && <Button icon="add" onClick={() => setEdited("new")}>{t.addModel}</Button>}
      </header>
      <p class="muted">{t.modelsAbout}</p>
      {edited === "new" && <ModelEditor canStore={!settings.secret_problem} onDone={done} onCancel={() => setEdited(null)} />}
      {settings.models.length + fixed.length === 0 && !edited && <p class="card">{t.noModels}</p>}
      <ul class="items">
        {settings.models.map((row) => (
          <li key={row.name} class="card">
            {edited === row ? <ModelEditor view={row} canStore={!settings.secret_problem} onDone={done} onCancel={() => setEdited(null)} /> : (
              <>
                <div class="row wrap"><span class="name">{row.name}</span><code class="grow muted">{row.settings.model}</code>{row.settings.offered !== false && <Badge tone="good">{t.offered}</Badge>}</div>
                {row.settings.base_url && <p class="small muted"><code>{row.settings.base_url}</code></p>}
                <p class="small muted">{t.storedBy(row.by, format.moment(row.at))}</p>
                {row.problem && <p class="small attention">{row.problem}</p>}
                <div class="row wrap">
                  <Button icon="edit" aria-label={`${t.edit}: ${row.name}`} onClick={() => setEdited(row)}>{t.edit}</Button>
                  <DeleteButton name={row.name} label={t.remove} what={t.removeModel} onDelete={() => deleteModel(row.name)} onDone={reload} />
                </div>
              </>
            )}
          </li>
        ))}
        <Fixed rows={fixed} />
      </ul>
    </>
  );
}

function ModelEditor({ view, canStore, onDone, onCancel }: { view?: ModelSettingsView; canStore: boolean; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const [name, setName] = useState(view?.name ?? "");
  const [model, setModel] = useState(view?.settings.model ?? "");
  const [url, setUrl] = useState(view?.settings.base_url ?? "");
  const [key, setKey] = useState("");
  const [offered, setOffered] = useState(view?.settings.offered ?? true);
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    const { window = null, tool_format: toolFormat = "" } = view?.settings ?? {};
    const settings = { model: model.trim(), base_url: url.trim(), offered, window, tool_format: toolFormat };
    const stored = await attempt(putModel(name.trim(), settings, view?.version ?? 0, key.trim()));
    setBusy(false);
    if (stored) onDone();
  };
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        {!view && <Field label={t.name} hint={t.nameHint}><input class="input" value={name} required autoFocus maxLength={64} onInput={(event) => setName(event.currentTarget.value)} /></Field>}
        <Field label={t.model} hint={t.modelHint}><input class="input" value={model} required maxLength={200} placeholder="openai:gpt-5.2" onInput={(event) => setModel(event.currentTarget.value)} /></Field>
        <Field label={t.url} hint={t.urlHint}><input class="input" type="url" value={url} maxLength={2000} placeholder="https://models.example.com/v1" onInput={(event) => setUrl(event.currentTarget.value)} /></Field>
        {url.trim() && canStore && <Field label={t.key} hint={view?.settings.key ? t.keepKey : t.keyHint}><input class="input" type="password" autocomplete="off" spellcheck={false} maxLength={4096} value={key} onInput={(event) => setKey(event.currentTarget.value)} /></Field>}
      </div>
      <label class="row"><input type="checkbox" checked={offered} onChange={(event) => setOffered(event.currentTarget.checked)} /> {t.offer}</label>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !name.trim() || !model.trim()}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}
