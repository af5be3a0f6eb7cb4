/** Inbound hooks section: URLs at which other systems start turns, their secrets and last calls. */
import { useState } from "preact/hooks";
import type { HookCallView, HookView, HookWithSecret, NewHook } from "@everturn/client";
import { agents, attempt, me } from "../../app/app";
import { hrefFor } from "../../app/route";
import { useStore } from "../../app/store";
import { format } from "../../app/texts";
import { Badge, Button, CopyButton, Dialog, Disclosure, Field } from "../../ui/components";
import { useFetch, useInterval } from "../../app/useFetch";
import { Loaded } from "./parts";
import { deleteHook, fetchCalls, fetchHooks, putHook, rotateHook } from "./hooksApi";
import { DeleteButton } from "./page";
import { textOfWhen, whenOfText } from "./when";
import "./hooks.css";
import { useTexts } from "../../locales/adminHooks.gen";
import { useTexts as useAdmin } from "../../locales/admin.gen";

const INTERVAL = 5; // seconds
type Scheme = HookView["scheme"];

const urlOf = (hook: HookView) => `${location.origin}${hook.path}`;

export function InboundHooks() {
  const t = useTexts();
  const a = useAdmin();
  const fetched = useFetch(fetchHooks);
  const [edited, setEdited] = useState<string | null>(null); // "": a new one
  const [made, setMade] = useState<HookWithSecret | null>(null);
  const done = (saved: HookWithSecret) => { setEdited(null); setMade(saved); fetched.reload(); };
  return (
    <>
      <p class="muted">{t.about}</p>
      <Loaded of={fetched}>{({ hooks, problem }) => (
        <>
          {problem && <p class="card attention">{problem}</p>}
          <header class="row wrap"><h2 class="grow">{a.hooks}</h2>{!problem && edited === null && <Button icon="add" onClick={() => setEdited("")}>{t.create}</Button>}</header>
          {edited === "" && <Editor onDone={done} onCancel={() => setEdited(null)} />}
          {hooks.length === 0 && edited === null && <p class="card">{t.none}</p>}
          <ul class="items hooks">
            {hooks.map((row) => (
              <li key={row.name} class={edited === row.name ? undefined : "card"}>
                {edited === row.name ? <Editor view={row} onDone={done} onCancel={() => setEdited(null)} />
                  : <Hook row={row} mayChange={!problem && row.origin === "api"} onEdit={() => setEdited(row.name)} onSecret={setMade} reload={fetched.reload} />}
              </li>
            ))}
          </ul>
        </>
      )}</Loaded>
      {made?.secret && <CreatedDialog made={made} onClose={() => setMade(null)} />}
    </>
  );
}

function CreatedDialog({ made, onClose }: { made: HookWithSecret; onClose: () => void }) {
  const t = useTexts();
  return (
    <Dialog title={t.createdTitle(made.hook.name)} onClose={onClose}>
      <div class="admin">
        <p>{made.hook.scheme === "github" ? t.giveGitHub : t.giveStandard}</p>
        <h3 class="small">{t.url}</h3>
        <p class="secret"><code class="grow">{urlOf(made.hook)}</code><CopyButton text={urlOf(made.hook)} label={t.copyUrl} done={t.copied} /></p>
        <h3 class="small">{t.secret}</h3>
        <p class="secret"><code class="grow">{made.secret}</code><CopyButton text={made.secret} label={t.copySecret} done={t.copied} /></p>
        <p class="small muted">{t.shownOnce}</p>
      </div>
      <div class="row"><Button kind="primary" onClick={onClose}>{t.close}</Button></div>
    </Dialog>
  );
}

function Hook({ row, mayChange, onEdit, onSecret, reload }: {
  row: HookView; mayChange: boolean; onEdit: () => void; onSecret: (made: HookWithSecret) => void; reload: () => void;
}) {
  const t = useTexts();
  const schemes: Record<Scheme, string> = { standard: t.standard, github: t.github, slack: t.slack };
  const actions = { send: t.sends, complete: t.completes, answer: t.answers };
  return (
    <article aria-label={row.name}>
      <div class="row wrap">
        <span class="name grow">{row.name}</span>
        <Badge>{schemes[row.scheme]}</Badge>
        {row.origin === "config" && <Badge icon="lock">{t.fixed}</Badge>}
        {row.problem && <Badge tone="bad">{t.unused}</Badge>}
      </div>
      <p class="url"><code>{urlOf(row)}</code><CopyButton text={urlOf(row)} label={`${t.copyUrl}: ${row.name}`} done={t.copied} /></p>
      {row.problem && <p class="small attention">{row.problem}</p>}
      <p>{actions[row.action]} <span class="muted">{row.agent && `· ${row.agent} `}{row.session && `· ${t.oneConversation(row.session)}`}</span></p>
      {row.text && <pre class="text small" tabIndex={0} dir="auto">{row.text}</pre>}
      {Object.keys(row.when).length > 0 && <p class="small muted">{t.onlyWhen} <code>{textOfWhen(row.when).replaceAll("\n", "; ")}</code></p>}
      <p class="small muted">{row.origin === "config" ? t.setIn : t.createdBy(row.by, format.moment(row.at))}</p>
      {mayChange && (
        <div class="row wrap">
          <Button icon="edit" aria-label={`${t.edit}: ${row.name}`} onClick={onEdit}>{t.edit}</Button>
          <RotateButton row={row} onSecret={onSecret} reload={reload} />
          <DeleteButton name={row.name} label={t.remove} what={t.removeWhat} onDelete={() => deleteHook(row.name)} onDone={reload} />
        </div>
      )}
      <Disclosure summary={<span>{t.calls}</span>}><Calls hook={row} /></Disclosure>
    </article>
  );
}

function RotateButton({ row, onSecret, reload }: { row: HookView; onSecret: (made: HookWithSecret) => void; reload: () => void }) {
  const t = useTexts();
  const [isAsking, setAsking] = useState(false);
  const [secret, setSecret] = useState("");
  const rotate = async () => {
    const made = await attempt(rotateHook(row.name, secret.trim()));
    if (!made) return;
    setAsking(false);
    setSecret("");
    onSecret(made);
    reload();
  };
  return (
    <>
      <Button icon="lock" aria-label={`${t.rotate}: ${row.name}`} onClick={() => setAsking(true)}>{t.rotate}</Button>
      {isAsking && (
        <Dialog title={t.rotateTitle(row.name)} onClose={() => setAsking(false)}>
          <p>{t.rotateWhat}</p>
          <Field label={t.secret} hint={row.scheme === "slack" ? t.slackSecret : t.secretHint}>
            <input class="input" type="password" autocomplete="off" spellcheck={false} maxLength={4000} value={secret} onInput={(event) => setSecret(event.currentTarget.value)} />
          </Field>
          <div class="row wrap">
            <Button onClick={() => setAsking(false)}>{t.cancel}</Button>
            <Button kind="primary" icon="lock" disabled={row.scheme === "slack" && !secret.trim()} onClick={() => void rotate()}>{t.rotate}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Calls({ hook }: { hook: HookView }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchCalls(hook.name), hook.name);
  useInterval(INTERVAL, fetched.reload);
  const user = useStore(me);
  const isReadable = user !== null && user !== "anonymous" && hook.by === user.user;
  return (
    <div class="details">
      <Loaded of={fetched}>{({ calls }) => calls.length === 0 ? <p class="small muted">{t.noCalls}</p> : (
        <ul class="log" aria-label={t.calls}>
          {calls.map((call) => (
            <li key={`${call.at} ${call.outcome} ${call.turn}`}>
              <span class="when">{format.moment(call.at)}</span>
              <Outcome call={call} />
              <span class="grow">{call.reason || (call.session && isReadable ? <a href={hrefFor({ page: "session", session: call.session })}>{t.open}</a> : <code>{call.session}</code>)}</span>
            </li>
          ))}
        </ul>
      )}</Loaded>
      <p class="small muted">{t.callsAbout}</p>
    </div>
  );
}

function Outcome({ call }: { call: HookCallView }) {
  const t = useTexts();
  const texts: Record<HookCallView["outcome"], string> = { started: t.started, completed: t.completed, answered: t.answered, ignored: t.ignored, repeated: t.repeated, refused: t.refused };
  const tone = call.outcome === "refused" ? "bad" : call.outcome === "ignored" || call.outcome === "repeated" ? undefined : "good";
  return <Badge tone={tone}>{texts[call.outcome]}</Badge>;
}

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function Editor({ view, onDone, onCancel }: { view?: HookView; onDone: (saved: HookWithSecret) => void; onCancel: () => void }) {
  const t = useTexts();
  const known = useStore(agents)?.agents ?? [];
  const [name, setName] = useState(view?.name ?? "");
  const [scheme, setScheme] = useState<Scheme>(view?.scheme ?? "standard");
  const [text, setText] = useState(view?.text ?? "");
  const [agent, setAgent] = useState(view?.agent ?? known.find((row) => row.is_default)?.name ?? "");
  const [session, setSession] = useState(view?.session ?? "");
  const [when, setWhen] = useState(textOfWhen(view?.when ?? {}));
  const [fields, setFields] = useState((view?.fields ?? []).join(", "));
  const [secret, setSecret] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isKept = view !== undefined && view.scheme === scheme;
  const needsSecret = scheme === "slack" && !isKept;
  const save = async () => {
    setBusy(true);
    const hook: NewHook = { scheme, text, agent, session: session.trim(), when: whenOfText(when), fields: words(fields), secret: secret.trim(), version: view?.version ?? 0 };
    const saved = await attempt(putHook(name.trim(), hook));
    setBusy(false);
    if (saved) onDone(saved);
  };
  return (
    <form class="card editor" aria-label={view ? t.edit : t.create} onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        {!view && <Field label={t.name} hint={t.nameHint(`${location.origin}/api/hooks/${name.trim() || "…"}`)}><input class="input" required autoFocus maxLength={64} pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" spellcheck={false} value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>}
        <Field label={t.sender} hint={t.senderHint}>
          <select class="input" value={scheme} onChange={(event) => setScheme(event.currentTarget.value as Scheme)}>
            {([["standard", t.standard], ["github", t.github], ["slack", t.slack]] as const).map(([value, label]) => <option key={value} value={value} selected={value === scheme}>{label}</option>)}
          </select>
        </Field>
        <Field label={t.agent}>
          <select class="input" value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            {known.map((row) => <option key={row.name} value={row.name} selected={row.name === agent}>{row.name}</option>)}
          </select>
        </Field>
      </div>
      <Field label={t.message} hint={t.messageHint("{{issue.number}}")}><textarea class="input" rows={3} dir="auto" required maxLength={20_000} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      <div class="fields">
        <Field label={t.conversation} hint={t.conversationHint}><input class="input" maxLength={2000} spellcheck={false} placeholder="{{issue.number}}" value={session} onInput={(event) => setSession(event.currentTarget.value)} /></Field>
        <Field label={t.fields} hint={t.fieldsHint}><input class="input" spellcheck={false} value={fields} onInput={(event) => setFields(event.currentTarget.value)} /></Field>
        <Field label={t.secret} hint={isKept ? t.secretKept : scheme === "slack" ? t.slackSecret : t.secretHint}>
          <input class="input" type="password" autocomplete="off" spellcheck={false} required={needsSecret} maxLength={4000} value={secret} onInput={(event) => setSecret(event.currentTarget.value)} />
        </Field>
      </div>
      <Field label={t.when} hint={t.whenHint}><textarea class="input" rows={2} spellcheck={false} placeholder="action = opened, reopened" value={when} onInput={(event) => setWhen(event.currentTarget.value)} /></Field>
      <p class="small muted">{t.authority}</p>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !name.trim() || !text.trim()}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}
