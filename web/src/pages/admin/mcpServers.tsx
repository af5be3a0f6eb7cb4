/** MCP servers page: servers that administrators add, their state, and trust in their tools. */
import { useState } from "preact/hooks";
import type { McpSettingsView, McpView, SettingsView } from "@everturn/client";
import { attempt } from "../../app/app";
import { format } from "../../app/texts";
import { Badge, Button, ErrorLine, Field, Spinner } from "../../ui/components";
import { useFetch, useInterval } from "../../app/useFetch";
import { fetchMcpLogins, revokeMcpLogin } from "../api";
import { Server } from "../mcp";
import { deleteMcp, putMcp } from "./api";
import { DeleteButton, Fixed, SettingsSection } from "./page";
import { useTexts } from "../../locales/adminMcp.gen";

export function McpServers() {
  const t = useTexts();
  return <SettingsSection about={t.about}>{(settings, reload) => <Servers settings={settings} reload={reload} />}</SettingsSection>;
}

interface Part { settings: SettingsView; reload: () => void }

function Servers({ settings, reload }: Part) {
  const t = useTexts();
  const [edited, setEdited] = useState<string | null>(null); // "": a new one
  const isChanging = settings.mcp?.some(({ server }) => server?.state === "connecting" || server?.is_logging_in);
  useInterval(isChanging ? 1.5 : 5, reload);
  const fixed = settings.fixed.filter((row) => row.kind === "mcp");
  const done = () => { setEdited(null); reload(); };
  const rows = settings.mcp ?? [];
  return (
    <>
      <header class="row wrap">
        <h2 class="grow">{t.servers}</h2>
        {edited === null && !settings.mcp_problem && <Button icon="add" onClick={() => setEdited("")}>{t.add}</Button>}
      </header>
      <p class="muted">{t.shared}</p>
      {settings.mcp_problem && <p class="card attention">{settings.mcp_problem}</p>}
      {edited === "" && <Editor settings={settings} onDone={done} onCancel={() => setEdited(null)} />}
      {rows.length + fixed.length === 0 && edited === null && <p class="card">{t.none}</p>}
      <ul class="items mcp">
        {rows.map((row) => (
          <li key={row.name}>
            {edited === row.name ? <Editor settings={settings} view={row} onDone={done} onCancel={() => setEdited(null)} /> : <Stored row={row} onEdit={() => setEdited(row.name)} reload={reload} />}
          </li>
        ))}
        <Fixed rows={fixed} />
      </ul>
    </>
  );
}

function Stored({ row, onEdit, reload }: { row: McpSettingsView; onEdit: () => void; reload: () => void }) {
  const t = useTexts();
  const { server } = row;
  return (
    <div class="stored">
      {server ? <Server view={server} reload={reload} manages /> : <p class="card"><span class="name">{row.name}</span></p>}
      {server?.login === "user" && <LoginList server={row.name} />}
      {row.problem && <p class="small attention">{row.problem}</p>}
      <div class="row wrap">
        <span class="small muted grow">{t.storedBy(row.by, format.moment(row.at))} {t.trusted(row.trusted ?? 0)}</span>
        {server && hasWaiting(server) && <Badge tone="warn">{t.waits}</Badge>}
        <Button icon="edit" aria-label={`${t.edit}: ${row.name}`} onClick={onEdit}>{t.edit}</Button>
        <DeleteButton name={row.name} label={t.remove} what={t.removeServer} onDelete={() => deleteMcp(row.name)} onDone={reload} />
      </div>
    </div>
  );
}

function LoginList({ server }: { server: string }) {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="login-list">
      <Button little aria-expanded={isOpen} aria-label={`${t.who}: ${server}`} onClick={() => setOpen(!isOpen)}>{t.who}</Button>
      {isOpen && <Logins server={server} />}
    </div>
  );
}

/** Who has a login of their own: ids, and nothing of the logins. Read when somebody looks. */
function Logins({ server }: { server: string }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchMcpLogins(server));
  const users = fetched.value?.users;
  if (fetched.problem) return <ErrorLine>{fetched.problem}</ErrorLine>;
  if (!users) return <Spinner label={t.loadingLogins} />;
  return (
    <>
      <p class="small muted">{t.loginCount(users.length)}</p>
      <ul class="plain logins">
        {users.map((user) => (
          <li key={user} class="row wrap">
            <code class="grow">{user}</code>
            <DeleteButton name={user} label={t.revoke} what={t.revokeWhat} onDelete={() => revokeMcpLogin(server, user)} onDone={fetched.reload} />
          </li>
        ))}
      </ul>
    </>
  );
}

const hasWaiting = (server: McpView) => server.tools.some((tool) => tool.is_changed);

function Editor({ settings, view, onDone, onCancel }: { settings: SettingsView; view?: McpSettingsView; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const programs = settings.programs ?? [];
  const [name, setName] = useState(view?.name ?? "");
  const [program, setProgram] = useState(view?.program ?? "");
  const [url, setUrl] = useState(view?.url ?? "");
  const [auth, setAuth] = useState(view?.auth === "oauth");
  const [isShared, setShared] = useState(view?.login === "shared");
  const [header, setHeader] = useState(view?.program ? "" : (view?.values?.[0] ?? ""));
  const [values, setValues] = useState<Record<string, string>>({});
  const [isBusy, setBusy] = useState(false);
  const names = program ? (programs.find((row) => row.name === program)?.variables ?? []) : header.trim() ? [header.trim()] : [];
  const isKept = (text: string) => view?.values?.includes(text) ?? false;
  const save = async () => {
    setBusy(true);
    const sent = Object.fromEntries(names.filter((text) => values[text] || isKept(text)).map((text) => [text, values[text] ?? ""]));
    const server = { url: program ? "" : url.trim(), program, auth: auth && !program ? ("oauth" as const) : ("none" as const), login: !auth || program ? ("" as const) : isShared ? ("shared" as const) : ("user" as const), values: sent, version: view?.version ?? 0 };
    const stored = await attempt(putMcp(name.trim(), server));
    setBusy(false);
    if (stored) onDone();
  };
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <div class="fields">
        {!view && <Field label={t.name} hint={t.nameHint}><input class="input" value={name} required autoFocus maxLength={32} onInput={(event) => setName(event.currentTarget.value)} /></Field>}
        {programs.length > 0 && (
          <Field label={t.kind} hint={t.kindHint}>
            <select class="input" value={program} onChange={(event) => setProgram(event.currentTarget.value)}>
              <option value="">{t.address}</option>
              {programs.map((row) => <option key={row.name} value={row.name}>{t.program(row.name)}</option>)}
            </select>
          </Field>
        )}
        {!program && <Field label={t.url} hint={t.urlHint}><input class="input" type="url" required value={url} maxLength={2000} placeholder="https://mcp.example.com/mcp" onInput={(event) => setUrl(event.currentTarget.value)} /></Field>}
        {!program && !settings.secret_problem && <Field label={t.header} hint={t.headerHint}><input class="input" value={header} maxLength={200} spellcheck={false} placeholder="Authorization" onInput={(event) => setHeader(event.currentTarget.value)} /></Field>}
        {names.map((text) => (
          <Field key={text} label={t.value(text)} hint={isKept(text) ? t.keepValue : t.valueHint}>
            <input class="input" type="password" autocomplete="off" spellcheck={false} maxLength={4000} value={values[text] ?? ""} onInput={(event) => setValues({ ...values, [text]: event.currentTarget.value })} />
          </Field>
        ))}
      </div>
      {!program && <label class="row"><input type="checkbox" checked={auth} onChange={(event) => setAuth(event.currentTarget.checked)} /> {t.oauth}</label>}
      {!program && auth && (
        <fieldset class="choice">
          <legend>{t.whose}</legend>
          <label class="row"><input type="radio" name="whose" checked={!isShared} onChange={() => setShared(false)} /> <span>{t.perPerson} <span class="small muted">{t.perPersonHint}</span></span></label>
          <label class="row"><input type="radio" name="whose" checked={isShared} onChange={() => setShared(true)} /> <span>{t.sharedLogin} <span class="small muted">{t.sharedLoginHint}</span></span></label>
        </fieldset>
      )}
      <p class="small muted">{t.next}</p>
      {settings.secret_problem && <p class="small attention">{settings.secret_problem}</p>}
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !name.trim() || (!program && !url.trim())}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}
