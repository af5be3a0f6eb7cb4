/** Memory page: the caller's memory files, to read, edit, create and delete them. */
import { useEffect, useState } from "preact/hooks";
import type { MemoryFileView, MemoryInfoView } from "@everturn/client";
import { attempt, hasRole } from "../app/app";
import { format } from "../app/texts";
import { VisibleText } from "../gates/visibleText";
import { Badge, Button, Dialog, ErrorLine, Field, Spinner } from "../ui/components";
import { useFetch } from "../app/useFetch";
import { deleteMemory, fetchMemory, fetchMemoryFile, writeMemory } from "./api";
import "./memory.css";
import { useTexts } from "../locales/memory.gen";

export function Memory() {
  const t = useTexts();
  const fetched = useFetch(fetchMemory);
  const [path, setPath] = useState("");
  const [isNew, setNew] = useState(false);
  const list = fetched.value;
  const used = list?.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
  const done = (shown: string) => { setNew(false); setPath(shown); fetched.reload(); };
  return (
    <div class="page memory">
      <div class="inner">
        <header class="row wrap">
          <h1 class="grow">{t.title}</h1>
          {hasRole("member") && !isNew && <Button icon="add" onClick={() => { setPath(""); setNew(true); }}>{t.create}</Button>}
        </header>
        <p class="muted">{t.about}</p>
        {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
        {!list && !fetched.problem && <Spinner label={t.loading} />}
        {isNew && <Editor onDone={done} />}
        {list?.files.length === 0 && !isNew && <p class="card">{t.none}</p>}
        {list && list.files.length > 0 && <p class="small muted">{t.used(format.bytes(used), format.bytes(list.limit))}</p>}
        <ul class="files">
          {list?.files.map((file) => (
            <li key={file.path} class="card">
              <button type="button" class="file row wrap" aria-expanded={path === file.path} onClick={() => setPath(path === file.path ? "" : file.path)}>
                <code class="grow" dir="auto">{file.path}</code>
                {file.untrusted && <Badge tone="warn" title={t.untrustedHint}>{t.untrusted}</Badge>}
                <span class="small muted">{t.bytes(file.size)} · {format.moment(file.updated)}</span>
              </button>
              {path === file.path && <File key={`${file.hash} ${file.untrusted}`} info={file} onDone={done} />}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function File({ info, onDone }: { info: MemoryInfoView; onDone: (path: string) => void }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchMemoryFile(info.path), info.path);
  const [isEditing, setEditing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const view = fetched.value;
  if (!view) return fetched.problem ? <ErrorLine>{fetched.problem}</ErrorLine> : <Spinner label={t.loading} />;
  if (isEditing) return <Editor view={view} onDone={onDone} onCancel={() => setEditing(false)} />;
  const trust = async () => { if (await attempt(writeMemory({ path: info.path, text: view.text, base: view.file.hash, untrusted: false }))) onDone(info.path); };
  const remove = async () => { await attempt(deleteMemory(info.path)); onDone(""); };
  return (
    <>
      {view.file.untrusted && <p class="small attention">{t.untrustedHint}</p>}
      <pre class="text" tabIndex={0}><VisibleText text={view.text} /></pre>
      {hasRole("member") && (
        <div class="row wrap">
          <Button icon="edit" onClick={() => setEditing(true)}>{t.edit}</Button>
          {view.file.untrusted && <Button onClick={() => void trust()}>{t.trust}</Button>}
          <Button icon="trash" onClick={() => setDeleting(true)}>{t.remove}</Button>
        </div>
      )}
      {isDeleting && (
        <Dialog title={t.sure} onClose={() => setDeleting(false)}>
          <p><code dir="auto">{info.path}</code></p>
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

/** Edits a file, or a new one. A file that was changed meanwhile is not overwritten: the server compares `base`. */
function Editor({ view, onDone, onCancel }: { view?: MemoryFileView; onDone: (path: string) => void; onCancel?: () => void }) {
  const t = useTexts();
  const [path, setPath] = useState(view?.file.path ?? "");
  const [text, setText] = useState(view?.text ?? "");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => setBusy(false), [view]);
  const save = async () => {
    setBusy(true);
    const written = await attempt(writeMemory({ path: path.trim(), text, base: view?.file.hash ?? "none" }));
    setBusy(false);
    if (written) onDone(written.file.path);
  };
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      {!view && <Field label={t.path} hint={t.pathHint}><input class="input" value={path} required autoFocus onInput={(event) => setPath(event.currentTarget.value)} /></Field>}
      <Field label={t.text}><textarea class="input" rows={10} dir="auto" value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !path.trim()}>{t.save}</Button>
        <Button type="button" onClick={() => (onCancel ? onCancel() : onDone(""))}>{t.cancel}</Button>
      </div>
    </form>
  );
}
