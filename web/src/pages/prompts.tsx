/** Prompts page: saved prompts, to write and delete them, and the instructions of new conversations. */
import { useState } from "preact/hooks";
import type { PromptView } from "@everturn/client";
import { attempt, hasRole } from "../app/app";
import { VisibleText } from "../gates/visibleText";
import { Badge, Button, Dialog, ErrorLine, Field, Spinner } from "../ui/components";
import { useFetch } from "../app/useFetch";
import { deletePrompt, fetchPrompts, writePrompt } from "./api";
import { Instructions } from "./instructions";
import { useTexts } from "../locales/prompts.gen";

export function Prompts() {
  const t = useTexts();
  const fetched = useFetch(fetchPrompts);
  const [edited, setEdited] = useState<PromptView | "new" | null>(null);
  const done = () => { setEdited(null); fetched.reload(); };
  const list = fetched.value?.prompts;
  return (
    <div class="page prompts">
      <div class="inner">
        <h1>{t.title}</h1>
        <header class="row wrap">
          <h2 class="grow">{t.prompts}</h2>
          {hasRole("member") && !edited && <Button icon="add" onClick={() => setEdited("new")}>{t.create}</Button>}
        </header>
        <p class="muted">{t.about}</p>
        {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
        {!list && !fetched.problem && <Spinner label={t.loading} />}
        {edited === "new" && <Editor onDone={done} onCancel={() => setEdited(null)} />}
        {list?.length === 0 && !edited && <p class="card">{t.none}</p>}
        <ul class="files">
          {list?.map((prompt) => (
            <li key={prompt.name} class="card">
              {edited === prompt ? <Editor prompt={prompt} onDone={done} onCancel={() => setEdited(null)} /> : <Prompt prompt={prompt} onEdit={() => setEdited(prompt)} onDone={done} />}
            </li>
          ))}
        </ul>
        <h2>{t.instructions}</h2>
        <Instructions />
      </div>
    </div>
  );
}

function Prompt({ prompt, onEdit, onDone }: { prompt: PromptView; onEdit: () => void; onDone: () => void }) {
  const t = useTexts();
  const [isDeleting, setDeleting] = useState(false);
  const { name, scope } = prompt;
  const canWrite = (scope === "user" && hasRole("member")) || (scope === "shared" && hasRole("owner"));
  const remove = async () => { await attempt(deletePrompt(name, scope === "shared")); onDone(); };
  const names = prompt.arguments.map((one) => (one.default == null ? one.name : `${one.name}=${one.default}`)).join(", ");
  return (
    <>
      <div class="row wrap"><code>/{name}</code><span class="grow muted"><VisibleText text={prompt.description} /></span><Badge>{scope === "shared" ? t.sharedBadge : t[scope]}</Badge></div>
      {names && <p class="small muted"><VisibleText text={t.args(names)} /></p>}
      <pre class="text" tabIndex={0}><VisibleText text={prompt.text} /></pre>
      {canWrite && (
        <div class="row wrap">
          <Button icon="edit" onClick={onEdit}>{t.edit}</Button>
          <Button icon="trash" onClick={() => setDeleting(true)}>{t.remove}</Button>
        </div>
      )}
      {isDeleting && (
        <Dialog title={t.sure} onClose={() => setDeleting(false)}>
          <p><code>/{name}</code></p>
          <p>{t.what}</p>
          <div class="row wrap">
            <Button autoFocus onClick={() => setDeleting(false)}>{t.no}</Button>
            <Button kind="danger" icon="trash" onClick={() => void remove()}>{t.yes}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Editor({ prompt, onDone, onCancel }: { prompt?: PromptView; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const [name, setName] = useState(prompt?.name ?? "");
  const [description, setDescription] = useState(prompt?.description ?? "");
  const [text, setText] = useState(prompt?.text ?? "");
  const [shared, setShared] = useState(prompt?.scope === "shared");
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    const kept = prompt?.arguments.filter((one) => new RegExp(`\\{\\{\\s*${one.name}\\s*\\}\\}`).test(text)) ?? [];
    const written = await attempt(writePrompt({ name: name.trim(), text, description: description.trim(), arguments: kept, shared }));
    setBusy(false);
    if (written) onDone();
  };
  return (
    <form class="editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      {!prompt && <Field label={t.name} hint={t.nameHint}><input class="input" value={name} required autoFocus onInput={(event) => setName(event.currentTarget.value)} /></Field>}
      <Field label={t.description}><input class="input" dir="auto" maxLength={500} value={description} onInput={(event) => setDescription(event.currentTarget.value)} /></Field>
      <Field label={t.text} hint={t.textHint}><textarea class="input" rows={8} dir="auto" required maxLength={20_000} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      {!prompt && hasRole("owner") && <label class="row"><input type="checkbox" checked={shared} onChange={(event) => setShared(event.currentTarget.checked)} /> {t.shared}</label>}
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !name.trim() || !text.trim()}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}
