/** Webhooks section: URLs that are told of events, their secrets and deliveries. */
import { useState } from "preact/hooks";
import type { DeliveryView, PatchWebhook, WebhookTestView, WebhookView, WebhookWithSecret } from "@everturn/client";
import { attempt, toast } from "../../app/app";
import { format } from "../../app/texts";
import { Badge, Button, Disclosure, Field } from "../../ui/components";
import { useFetch, useInterval } from "../../app/useFetch";
import { Loaded, SecretDialog } from "./parts";
import { createWebhook, deleteWebhook, fetchDeliveries, fetchWebhooks, pauseWebhook, replayDeliveries, resumeWebhook, rotateWebhook, testWebhook, updateWebhook } from "./hooksApi";
import { DeleteButton } from "./page";
import "./hooks.css";
import { useTexts } from "../../locales/adminWebhooks.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const INTERVAL = 5; // seconds
const EVENTS = ["turn.completed", "turn.failed", "turn.cancelled", "gate.opened", "gate.resolved"] as const;
type EventName = (typeof EVENTS)[number];

export function Webhooks() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchWebhooks);
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<WebhookWithSecret | null>(null);
  useInterval(INTERVAL, fetched.reload); // a receiver may disable its webhook
  return (
    <>
      <p class="muted">{t.about}</p>
      <header class="row wrap"><h2 class="grow">{a.webhooks}</h2>{!isAdding && <Button icon="add" onClick={() => setAdding(true)}>{t.add}</Button>}</header>
      {isAdding && <NewWebhookForm onDone={(created) => { setAdding(false); setMade(created); fetched.reload(); }} onCancel={() => setAdding(false)} />}
      <Loaded of={fetched}>{({ webhooks }) => (
        <>
          {webhooks.length === 0 && !isAdding && <p class="card">{t.none}</p>}
          <ul class="items hooks">{webhooks.map((row) => <li key={row.id} class="card"><Endpoint row={row} onSecret={setMade} reload={fetched.reload} /></li>)}</ul>
        </>
      )}</Loaded>
      {made && <SecretDialog title={t.secretTitle} about={t.secretAbout} secret={made.secret} onClose={() => setMade(null)} />}
    </>
  );
}

function NewWebhookForm({ onDone, onCancel }: { onDone: (made: WebhookWithSecret) => void; onCancel: () => void }) {
  const t = useTexts();
  const save = async (values: Values) => {
    const made = await attempt(createWebhook({ url: values.url, description: values.description, events: values.events }));
    if (made) onDone(made);
  };
  return <WebhookForm label={t.add} values={{ url: "", description: "", events: ["turn.completed", "turn.failed"] }} onSave={save} onCancel={onCancel} />;
}

function EditWebhookForm({ row, onDone, onCancel }: { row: WebhookView; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const [before] = useState(row); // the list is fetched again meanwhile
  const save = async (values: Values) => {
    if (await attempt(updateWebhook(row.id, changesOf(before, values)))) onDone();
  };
  return <WebhookForm label={`${t.edit}: ${before.url}`} values={before} onSave={save} onCancel={onCancel} />;
}

interface Values {
  readonly url: string;
  readonly description: string;
  readonly events: readonly EventName[];
  readonly is_paused?: boolean;
}

/** What a person has changed: the rest stays as it is by now. */
export function changesOf(before: Values, values: Values): PatchWebhook {
  return {
    ...(values.url !== before.url && { url: values.url }),
    ...(values.description !== before.description && { description: values.description }),
    ...(values.events.join() !== before.events.join() && { events: values.events }),
    ...(values.is_paused !== before.is_paused && values.is_paused !== undefined && { is_paused: values.is_paused }),
  };
}

/** The form of a webhook; of one that exists it has `is_paused`. */
function WebhookForm({ label, values, onSave, onCancel }: { label: string; values: Values; onSave: (values: Values) => Promise<void>; onCancel: () => void }) {
  const t = useTexts();
  const [url, setUrl] = useState(values.url);
  const [description, setDescription] = useState(values.description);
  const [events, setEvents] = useState<ReadonlySet<EventName>>(new Set(values.events));
  const [isPaused, setPaused] = useState(values.is_paused);
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    await onSave({ url: url.trim(), description: description.trim(), events: EVENTS.filter((name) => events.has(name)), is_paused: isPaused });
    setBusy(false);
  };
  const toggle = (name: EventName) => setEvents(new Set(EVENTS.filter((other) => (other === name ? !events.has(name) : events.has(other)))));
  return (
    <form class={values.is_paused === undefined ? "card editor" : "editor"} aria-label={label} onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        <Field label={t.url} hint={t.urlHint}><input class="input" type="url" required autoFocus maxLength={2000} placeholder="https://example.com/hook" value={url} onInput={(event) => setUrl(event.currentTarget.value)} /></Field>
        <Field label={t.description}><input class="input" dir="auto" maxLength={500} value={description} onInput={(event) => setDescription(event.currentTarget.value)} /></Field>
      </div>
      <fieldset class="choices">
        <legend>{t.events}</legend>
        {EVENTS.map((name) => <label key={name} class="check"><input type="checkbox" checked={events.has(name)} onChange={() => toggle(name)} /><code>{name}</code><span class="small muted">{t[name]}</span></label>)}
      </fieldset>
      {isPaused !== undefined && <label class="check"><input type="checkbox" checked={isPaused} onChange={(event) => setPaused(event.currentTarget.checked)} /><span>{t.paused}</span></label>}
      <p class="small muted">{isPaused === undefined ? t.idsOnly : t.secretStays}</p>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !url.trim() || events.size === 0}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}

function Endpoint({ row, onSecret, reload }: { row: WebhookView; onSecret: (made: WebhookWithSecret) => void; reload: () => void }) {
  const t = useTexts();
  const [tested, setTested] = useState<WebhookTestView | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const isFixed = row.origin === "config";
  const act = async <T,>(request: Promise<T>): Promise<T | undefined> => {
    setBusy(true);
    const value = await attempt(request);
    setBusy(false);
    reload();
    return value;
  };
  const test = async () => { setTested(null); setTested((await act(testWebhook(row.id))) ?? null); };
  const rotate = async () => { const made = await act(rotateWebhook(row.id)); if (made) onSecret(made); };
  if (isEditing) return <EditWebhookForm row={row} onDone={() => { setEditing(false); reload(); }} onCancel={() => setEditing(false)} />;
  return (
    <article aria-label={row.url}>
      <div class="row wrap">
        <code class="name grow">{row.url}</code>
        {isFixed && <Badge icon="lock">{t.fixed}</Badge>}
        {row.is_paused ? <Badge tone="warn">{t.paused}</Badge> : row.disabled ? <Badge tone="bad">{t.disabled}</Badge> : row.failing ? <Badge tone="bad">{t.failing}</Badge> : <Badge tone="good">{t.active}</Badge>}
      </div>
      {row.description && <p><bdi>{row.description}</bdi></p>}
      {row.disabled && <p class="small attention">{t.disabledWhy(row.disabled)}</p>}
      {row.failing && !row.disabled && <p class="small attention">{t.failingWhy(row.failing.count, format.moment(row.failing.since), row.failing.problem)}</p>}
      <p class="row wrap">{row.events.map((name) => <Badge key={name}>{name}</Badge>)}</p>
      <p class="small muted">{isFixed ? t.setIn : row.by ? t.createdBy(row.by, format.moment(row.created)) : t.createdAt(format.moment(row.created))} <code>{row.id}</code></p>
      <div class="row wrap">
        <Button icon="send" disabled={isBusy} aria-label={`${t.test}: ${row.url}`} onClick={() => void test()}>{t.test}</Button>
        {row.is_paused || row.disabled
          ? <Button icon="redo" disabled={isBusy} aria-label={`${t.resume}: ${row.url}`} onClick={() => void act(resumeWebhook(row.id))}>{t.resume}</Button>
          : !isFixed && <Button icon="stop" disabled={isBusy} aria-label={`${t.pause}: ${row.url}`} onClick={() => void act(pauseWebhook(row.id))}>{t.pause}</Button>}
        {!isFixed && <Button icon="edit" disabled={isBusy} aria-label={`${t.edit}: ${row.url}`} onClick={() => setEditing(true)}>{t.edit}</Button>}
        <Button icon="lock" disabled={isBusy} aria-label={`${t.rotate}: ${row.url}`} onClick={() => void rotate()}>{t.rotate}</Button>
        {!isFixed && <DeleteButton name={row.url} label={t.remove} what={t.removeWhat} onDelete={() => deleteWebhook(row.id)} onDone={reload} />}
      </div>
      {tested && <p role="status" class={tested.problem ? "small attention" : "small good"}>{tested.problem ? t.testFailed(tested.problem) : t.testDone(tested.status)}</p>}
      <Disclosure summary={<span>{t.deliveries}</span>}><Deliveries row={row} /></Disclosure>
    </article>
  );
}

type State = DeliveryView["state"];

function Deliveries({ row }: { row: WebhookView }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchDeliveries(row.id), row.id);
  const [state, setState] = useState<State | "">("");
  useInterval(INTERVAL, fetched.reload);
  const states: Record<State, string> = { pending: t.pending, delivered: t.delivered, dead: t.dead };
  const isSending = !row.is_paused && !row.disabled;
  const replay = async (delivery?: DeliveryView) => {
    const done = await attempt(replayDeliveries(row.id, delivery ? { session: delivery.session, seq: delivery.seq } : {}));
    if (done) toast(t.replayed(done.count));
    fetched.reload();
  };
  return (
    <div class="details">
      <Loaded of={fetched}>{(all) => {
        const dead = all.filter((one) => one.state === "dead").length;
        const shown = all.filter((one) => !state || one.state === state);
        return (
          <>
            <div class="row wrap">
              <select class="input" aria-label={t.filter} value={state} onChange={(event) => setState(event.currentTarget.value as State | "")}>
                <option value="" selected={!state}>{t.allStates(all.length)}</option>
                {(Object.keys(states) as State[]).map((name) => <option key={name} value={name} selected={name === state}>{`${states[name]} (${all.filter((one) => one.state === name).length})`}</option>)}
              </select>
              {dead > 0 && <Button icon="redo" disabled={!isSending} onClick={() => void replay()}>{t.replayAll(dead)}</Button>}
            </div>
            {!isSending && dead > 0 && <p class="small muted">{t.resumeFirst}</p>}
            {shown.length === 0 ? <p class="small muted">{t.noDeliveries}</p> : (
              <ul class="log" aria-label={t.deliveries}>
                {shown.map((one) => <DeliveryRow key={one.id} row={one} text={one.state === "dead" ? t.deadLetter : states[one.state]} isSending={isSending} onReplay={() => void replay(one)} />)}
              </ul>
            )}
          </>
        );
      }}</Loaded>
    </div>
  );
}

const TONES = { pending: "accent", delivered: "good", dead: "bad" } as const;

function DeliveryRow({ row, text, isSending, onReplay }: { row: DeliveryView; text: string; isSending: boolean; onReplay: () => void }) {
  const t = useTexts();
  return (
    <li>
      <span class="when"><code>{row.type}</code><span class="small muted">{format.moment(row.at)}</span></span>
      <Badge tone={row.state === "pending" && row.problem ? "warn" : TONES[row.state]}>{text}</Badge>
      <span class="grow">
        {t.attempts(row.tries)}{row.problem ? `: ${row.problem}` : row.status > 0 && `: ${t.status(row.status)}`}{row.state === "pending" && row.tries > 0 && row.due !== null && `, ${t.nextTry(format.ago(row.due))}`}
        <span class="small muted event">{t.event(row.seq)} <code>{row.session}</code></span>
      </span>
      {row.state !== "pending" && <Button little icon="redo" disabled={!isSending} aria-label={t.replayOf(row.type, row.seq)} onClick={onReplay}>{t.replay}</Button>}
    </li>
  );
}
