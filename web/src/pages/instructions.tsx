/** Instructions: the layers of the system prompt in the order in which they are sent, and forms for those that people write. */
import { useState } from "preact/hooks";
import type { InstructionLayer, InstructionsView } from "@everturn/client";
import { attempt, hasRole } from "../app/app";
import { VisibleText } from "../gates/visibleText";
import { Button, ErrorLine, Field, Spinner } from "../ui/components";
import { useFetch } from "../app/useFetch";
import { fetchInstructions, writeInstructions, type Writable } from "./api";
import "./instructions.css";
import { useTexts } from "../locales/instructions.gen";

const ORDER = ["header", "model", "app", "workspace", "shared", "custom", "user", "agent", "session", "privacy"] as const;
type Layer = (typeof ORDER)[number];

export function Instructions({ session = "" }: { session?: string }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchInstructions(session), session);
  const [edited, setEdited] = useState<Layer | "">("");
  const layers = new Map(fetched.value?.layers.map((layer) => [layer.layer, layer]));
  const canWrite = (layer: Layer) => hasRole(layer === "shared" ? "owner" : "member") && (layer === "user" || layer === "shared" || (layer === "session" && session !== ""));
  const save = async (layer: Layer, text: string): Promise<void> => {
    if (!(await attempt<InstructionsView>(writeInstructions(layer as Writable, text, session)))) return;
    setEdited("");
    fetched.reload();
  };
  return (
    <section class="instructions" aria-label={t.title}>
      <p class="small muted">{t.about}</p>
      {fetched.problem && <ErrorLine>{fetched.problem}</ErrorLine>}
      {!fetched.value && !fetched.problem && <Spinner label={t.loading} />}
      {fetched.value && ORDER.filter((layer) => layers.has(layer) || canWrite(layer)).map((layer) => (
        <div key={layer} class="card">
          <div class="row wrap">
            <strong class="grow">{t[layer]}</strong>
            {canWrite(layer) && edited !== layer && <Button little icon="edit" aria-label={`${t.edit}: ${t[layer]}`} onClick={() => setEdited(layer)}>{t.edit}</Button>}
          </div>
          {edited === layer
            ? <Editor label={t[layer]} text={layers.get(layer)?.text ?? ""} onSave={(text) => save(layer, text)} onCancel={() => setEdited("")} />
            : <Text layer={layers.get(layer)} />}
        </div>
      ))}
    </section>
  );
}

function Text({ layer }: { layer?: InstructionLayer }) {
  const t = useTexts();
  if (!layer) return <p class="small muted">{t.empty}</p>;
  return layer.text ? <pre class="text" tabIndex={0}><VisibleText text={layer.text} /></pre> : <p class="small muted">{t.hidden(layer.size)}</p>;
}

const MOST = 16_000; // characters, as the server accepts them

function Editor({ label, text: before, onSave, onCancel }: { label: string; text: string; onSave: (text: string) => Promise<void>; onCancel: () => void }) {
  const t = useTexts();
  const [text, setText] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const save = async () => { setBusy(true); await onSave(text); setBusy(false); };
  return (
    <form onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <Field label={label}><textarea class="input" rows={6} dir="auto" autoFocus maxLength={MOST} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}
