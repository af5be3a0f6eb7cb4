/** Agents page: create, edit and delete agents; their versions, with what each changed, and undo. */
import { useState } from "preact/hooks";
import type { AgentSettings, AgentSettingsView } from "@everturn/client";
import { agents, attempt } from "../../app/app";
import { useStore } from "../../app/store";
import { format } from "../../app/texts";
import { diff } from "../../tree/diff";
import { Badge, Button, Dialog, ErrorLine, Field, Spinner } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { deleteAgent, fetchVersions, putAgent, restoreAgent } from "./api";
import { SettingsSection, DeleteButton, Fixed } from "./page";
import { useTexts } from "../../locales/adminAgents.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

export function Agents() {
  const t = useTexts();
  const a = useAdmin();
  const [edited, setEdited] = useState<AgentSettingsView | "new" | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  return (
    <SettingsSection about={t.about}>
      {(settings, reload) => {
        const fixed = settings.fixed.filter((row) => row.kind === "agent");
        const done = () => { setEdited(null); setShown(null); reload(); };
        return (
          <>
            <header class="row wrap"><h2 class="grow">{a.agents}</h2>{!edited && <Button icon="add" onClick={() => setEdited("new")}>{t.create}</Button>}</header>
            {edited === "new" && <AgentEditor onDone={done} onCancel={() => setEdited(null)} />}
            {settings.agents.length + fixed.length === 0 && !edited && <p class="card">{t.none}</p>}
            <ul class="items">
              {settings.agents.map((row) => (
                <li key={row.name} class="card">
                  {edited === row ? <AgentEditor view={row} onDone={done} onCancel={() => setEdited(null)} /> : <Agent view={row} onEdit={() => setEdited(row)} onVersions={() => setShown(row.name)} reload={reload} />}
                </li>
              ))}
              <Fixed rows={fixed} />
            </ul>
            {shown && <Versions name={shown} onClose={() => setShown(null)} onDone={done} />}
          </>
        );
      }}
    </SettingsSection>
  );
}

function Agent({ view, onEdit, onVersions, reload }: { view: AgentSettingsView; onEdit: () => void; onVersions: () => void; reload: () => void }) {
  const t = useTexts();
  return (
    <>
      <div class="row wrap"><span class="name">{view.name}</span><span class="grow muted">{view.settings.description}</span>{view.settings.model && <code class="muted">{view.settings.model}</code>}<Badge>{t.version(view.version)}</Badge></div>
      <p class="small muted">{t.changedBy(view.by, format.moment(view.at))}</p>
      {view.problem && <p class="small attention">{view.problem}</p>}
      {view.settings.instructions && <pre class="text small" tabIndex={0}>{view.settings.instructions}</pre>}
      <div class="row wrap">
        <Button icon="edit" aria-label={`${t.edit}: ${view.name}`} onClick={onEdit}>{t.edit}</Button>
        <Button icon="redo" aria-label={`${t.versions}: ${view.name}`} onClick={onVersions}>{t.versions}</Button>
        <DeleteButton name={view.name} label={t.remove} what={t.removeAbout} onDelete={() => deleteAgent(view.name)} onDone={reload} />
      </div>
    </>
  );
}

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function AgentEditor({ view, onDone, onCancel }: { view?: AgentSettingsView; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const offered = useStore(agents)?.models ?? [];
  const before: AgentSettings = view?.settings ?? {};
  const [name, setName] = useState(view?.name ?? "");
  const [description, setDescription] = useState(before.description ?? "");
  const [instructions, setInstructions] = useState(before.instructions ?? "");
  const [model, setModel] = useState(before.model ?? "");
  const [tools, setTools] = useState(before.tools ? before.tools.join(", ") : "");
  const [hasTools, setHasTools] = useState(before.tools === undefined || before.tools === null);
  const [groups, setGroups] = useState((before.groups ?? []).join(", "));
  const [steps, setSteps] = useState(before.max_steps ?? 10);
  const [cost, setCost] = useState(before.budget?.cost ?? 0);
  const [context, setContext] = useState(before.context ?? "auto");
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    const settings: AgentSettings = {
      ...before, description: description.trim(), instructions, model: model.trim(), tools: hasTools ? null : words(tools), groups: words(groups),
      max_steps: steps, context: context.trim() || "auto", budget: { ...before.budget, cost },
    };
    const stored = await attempt(putAgent(name.trim(), settings, view?.version ?? 0));
    setBusy(false);
    if (stored) onDone();
  };
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        {!view && <Field label={t.name} hint={t.nameHint}><input class="input" value={name} required autoFocus maxLength={64} onInput={(event) => setName(event.currentTarget.value)} /></Field>}
        <Field label={t.description}><input class="input" dir="auto" value={description} maxLength={2000} onInput={(event) => setDescription(event.currentTarget.value)} /></Field>
        <Field label={t.model} hint={t.modelHint}><input class="input" list="agent-models" value={model} maxLength={200} onInput={(event) => setModel(event.currentTarget.value)} /></Field>
      </div>
      <Field label={t.instructions}><textarea class="input" rows={10} dir="auto" maxLength={200_000} value={instructions} onInput={(event) => setInstructions(event.currentTarget.value)} /></Field>
      <label class="row"><input type="checkbox" checked={hasTools} onChange={(event) => setHasTools(event.currentTarget.checked)} /> {t.allTools}</label>
      <div class="fields">
        {!hasTools && <Field label={t.tools} hint={t.toolsHint}><input class="input" value={tools} onInput={(event) => setTools(event.currentTarget.value)} /></Field>}
        <Field label={t.groups} hint={t.toolsHint}><input class="input" value={groups} onInput={(event) => setGroups(event.currentTarget.value)} /></Field>
        <Field label={t.steps}><input class="input" type="number" min={1} max={1000} value={steps} onInput={(event) => setSteps(Number(event.currentTarget.value) || 1)} /></Field>
        <Field label={t.cost} hint={t.costHint}><input class="input" type="number" min={0} step="any" value={cost} onInput={(event) => setCost(Number(event.currentTarget.value) || 0)} /></Field>
        <Field label={t.context} hint={t.contextHint}><input class="input" list="agent-contexts" value={context} maxLength={40} onInput={(event) => setContext(event.currentTarget.value)} /></Field>
      </div>
      <datalist id="agent-models">{offered.map(({ name }) => <option key={name} value={name} />)}</datalist>
      <datalist id="agent-contexts">{["auto", "off", "last_turns(20)"].map((value) => <option key={value} value={value} />)}</datalist>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !name.trim()}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}

/** Settings as text, one field per line, so that versions can be compared. */
function asText(view: AgentSettingsView | undefined): string {
  if (!view || view.is_deleted) return "";
  return Object.entries(view.settings).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n");
}

function Versions({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: () => void }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchVersions(name), name);
  const versions = fetched.value?.versions;
  const restore = async (version: number) => { if (await attempt(restoreAgent(name, version))) onDone(); };
  return (
    <Dialog title={t.versionsOf(name)} onClose={onClose} wide>
      {fetched.problem && <ErrorLine>{fetched.problem}</ErrorLine>}
      {!versions && !fetched.problem && <Spinner label={t.loading} />}
      <ul class="items">
        {versions?.map((row, at) => (
          <li key={row.version}>
            <div class="row wrap">
              <Badge>{t.version(row.version)}</Badge>
              <span class="grow small muted">{row.is_deleted ? t.deletedBy(row.by, format.moment(row.at)) : t.changedBy(row.by, format.moment(row.at))}</span>
              {at > 0 && !row.is_deleted && <Button little icon="redo" aria-label={`${t.restore}: ${t.version(row.version)}`} onClick={() => void restore(row.version)}>{t.restore}</Button>}
            </div>
            {!row.is_deleted && (
              <pre class="text small" tabIndex={0}>
                {diff(asText(versions[at + 1]), asText(row)).map((change, index) => change.kind === "added" ? <ins key={index}>{change.text}</ins> : change.kind === "removed" ? <del key={index}>{change.text}</del> : change.text)}
              </pre>
            )}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
