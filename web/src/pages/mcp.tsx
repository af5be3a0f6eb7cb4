/** MCP servers page: state, tools and required actions of each server. */
import { useEffect, useState } from "preact/hooks";
import type { McpToolView, McpView } from "@everturn/client";
import { attempt, errorMessage, hasRole } from "../app/app";
import { navigate, route } from "../app/route";
import { format } from "../app/texts";
import { Badge, Button, CopyButton, ErrorLine, Disclosure, Icon, Spinner, type Tone } from "../ui/components";
import { useInterval, useFetch } from "../app/useFetch";
import { finishMcpLogin, logInToServer, logOutOfServer, retryServer, fetchMcpServers } from "./api";
import { TrustDialog } from "./mcpTrust";
import "./mcp.css";
import { useTexts } from "../locales/mcp.gen";

const TONES: Readonly<Record<McpView["state"], Tone>> = {
  connecting: "accent", ready: "good", down: "warn", untrusted: "warn", needs_login: "warn", failed: "bad",
};
const EXAMPLE = '[mcp.docs]\nurl = "https://docs.example.org/mcp"\n\n[mcp.files]\ncommand = "uvx"\nargs = ["some-mcp-server", "/srv/files"]\n';
const MAX_SHOWN = 8; // tools; the rest is collapsed

export function Mcp() {
  const t = useTexts();
  const fetched = useFetch(fetchMcpServers);
  const all = fetched.value?.servers;
  const isChanging = all?.some((server) => server.state === "connecting" || server.is_logging_in);
  useInterval(isChanging ? 1.5 : 5, fetched.reload);
  const end = useLoginEnd(fetched.reload);
  return (
    <div class="page mcp">
      <div class="inner">
        <h1>{t.title}</h1>
        {end.problem && <ErrorLine>{end.problem}</ErrorLine>}
        <div role="status">{end.server && <p class="card">{t.loggedInTo(end.server)}</p>}</div>
        {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
        {!all && !fetched.problem && <Spinner label={t.loading} />}
        {all?.length === 0 && (
          <div class="card none">
            <p>{t.none}</p>
            <div class="snippet"><pre>{EXAMPLE}</pre><CopyButton text={EXAMPLE} label={t.copy} done={t.copied} /></div>
          </div>
        )}
        {all?.map((server) => <Server key={server.name} view={server} reload={fetched.reload} />)}
      </div>
    </div>
  );
}

/** Completes a login with which this browser has come back. The code is in the address only until then. */
function useLoginEnd(reload: () => void) {
  const t = useTexts();
  const [end, setEnd] = useState<{ server?: string; problem?: string }>({});
  useEffect(() => {
    const at = route.value;
    if (at.page !== "mcp" || !at.login) return;
    const { iss, ...answer } = at.login;
    navigate({ page: "mcp" }, true);
    finishMcpLogin(iss ? { ...answer, iss } : answer)
      .then(({ server }) => setEnd(server ? { server } : {}))
      .catch((error: unknown) => setEnd({ problem: `${t.loginFailed} ${errorMessage(error)}` }))
      .finally(reload);
  }, []);
  return end;
}

export function Server({ view, reload, manages = hasRole("operator") }: { view: McpView; reload: () => void; manages?: boolean }) {
  const t = useTexts();
  const [isTrusting, setTrusting] = useState(false);
  const changed = view.tools.filter((tool) => tool.is_changed);
  const isOwn = view.login === "user";
  const next = view.state === "ready" ? "" : isOwn && view.state === "needs_login" ? t.next_own_login : t[`next_${view.state}`];
  // The other states are explained above, and beside a button.
  const isNews = view.reason && (view.state === "down" || view.state === "failed" || (view.state === "needs_login" && !view.can_log_in && !isOwn));
  return (
    <article class="card server" aria-label={view.name}>
      <header class="row wrap">
        <Icon name={view.transport === "stdio" ? "tool" : "link"} />
        <h2>{view.name}</h2>
        <Badge tone={TONES[view.state]}>{t[view.state]}</Badge>
        <span class="small muted since">{t.since(format.moment(view.since))}</span>
      </header>
      {view.runs && (
        <dl class="facts small">
          <dt>{t[view.transport]}</dt><dd><code>{view.runs}</code>{view.title && view.title !== view.name && <span class="muted"> {t.calls(view.title)}</span>}</dd>
          {view.variables.length > 0 && <><dt>{t.hands}</dt><dd>{view.variables.map((name) => <code key={name} class="variable">{name}</code>)}</dd></>}
        </dl>
      )}
      {next && <p>{next}{!manages && view.state !== "connecting" && !(isOwn && view.state === "needs_login") && <> {t.operator}</>}</p>}
      {isNews && <p class="reason small">{view.reason}</p>}
      {changed.length > 0 && <p class="attention"><Icon name="alert" /> <span>{t.changed(changed.length)}{!manages && <> {t.operator}</>}</span></p>}
      {view.problems.map((problem) => <p class="reason small" key={problem}>{problem}</p>)}
      {view.login && <LoginLine view={view} manages={manages} reload={reload} />}
      {(manages || (isOwn && hasRole("member"))) && <ServerActions view={view} reload={reload} manages={manages} hasChanged={changed.length > 0} onTrust={() => setTrusting(true)} />}
      {view.tools.length > 0 && <Tools tools={view.tools} />}
      {isTrusting && <TrustDialog view={view} onClose={() => { setTrusting(false); reload(); }} />}
    </article>
  );
}

/** Whose login the caller's calls use, and how to end it. */
function LoginLine({ view, manages, reload }: { view: McpView; manages: boolean; reload: () => void }) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const isOwn = view.login === "user";
  const text = !isOwn ? t.sharedLogin : view.is_logged_in ? t.loggedInAs(view.logged_in_as ?? "") : "";
  const since = view.is_logged_in && view.logged_in_since ? t.loggedInSince(format.moment(view.logged_in_since)) : "";
  const mayEnd = view.is_logged_in && (isOwn ? hasRole("member") : manages);
  if (!text) return null;
  const end = async () => {
    setBusy(true);
    await attempt(logOutOfServer(view));
    setBusy(false);
    reload();
  };
  return (
    <div class="row wrap login">
      <span class="whose"><Icon name={isOwn ? "lock" : "people"} /> <span>{text}</span></span> {since && <span class="small muted">{since}</span>}
      {mayEnd && <Button little disabled={isBusy} aria-label={`${t.logOut}: ${view.name}`} onClick={() => void end()}>{t.logOut}</Button>}
    </div>
  );
}

function ServerActions({ view, reload, manages, hasChanged, onTrust }: { view: McpView; reload: () => void; manages: boolean; hasChanged: boolean; onTrust: () => void }) {
  const t = useTexts();
  const [login, setLogin] = useState({ address: "", returns: false });
  const { address, returns } = login;
  const [isBusy, setBusy] = useState(false);
  const runAction = async (action: () => Promise<unknown>) => {
    setBusy(true);
    await attempt(action());
    setBusy(false);
    reload();
  };
  const wantsTrust = manages && (view.state === "untrusted" || hasChanged);
  const wantsLogin = view.can_log_in && view.state === "needs_login";
  const wantsRetry = manages && (view.state === "down" || view.state === "failed");
  if (!wantsTrust && !wantsLogin && !wantsRetry && !view.is_logging_in) return null;
  return (
    <div class="server-actions">
      <div class="row wrap">
        {wantsTrust && <Button kind="primary" icon="eye" onClick={onTrust}>{t.look}</Button>}
        {wantsLogin && !(address && view.is_logging_in) && <Button kind="primary" icon="lock" disabled={isBusy} onClick={() => runAction(async () => { const { address: to, returns: back = false } = await logInToServer(view); setLogin({ address: to, returns: back }); })}>{t.logIn}</Button>}
        {wantsRetry && <Button icon="redo" disabled={isBusy} onClick={() => runAction(() => retryServer(view))}>{t.tryNow}</Button>}
        {view.is_logging_in && isWebAddress(address) && <a class="button primary" href={address} {...(returns ? {} : { target: "_blank" })} rel="noopener noreferrer">{t.opens} <span class="muted-on">{new URL(address).host}</span></a>}
        {view.is_logging_in && <span class="row small muted"><Spinner /> {t.waiting}</span>}
      </div>
      {view.is_logging_in && <p class="small muted">{returns ? t.returnsHint : t.opensHint}</p>}
      {view.login_problem && !view.is_logging_in && <ErrorLine>{view.login_problem}</ErrorLine>}
    </div>
  );
}

/** Whether it may be opened at all: the address comes from the server that one logs in to. */
const isWebAddress = (address: string) => URL.canParse(address) && ["https:", "http:"].includes(new URL(address).protocol);

function Tools({ tools }: { tools: readonly McpToolView[] }) {
  const t = useTexts();
  const row = (tool: McpToolView) => (
    <li key={tool.name}>
      <code>{tool.name}</code> {tool.is_changed && <Badge tone="warn">{t.changedMark}</Badge>}
      {!tool.is_changed && <p class="small muted brief">{tool.description}</p>}
    </li>
  );
  return (
    <Disclosure open={tools.length <= 4} summary={<span class="small">{t.tools(tools.length)}</span>}>
      <ul class="plain">{tools.slice(0, MAX_SHOWN).map(row)}</ul>
      {tools.length > MAX_SHOWN && <Disclosure summary={<span class="small">{t.more(tools.length - MAX_SHOWN)}</span>}><ul class="plain">{tools.slice(MAX_SHOWN).map(row)}</ul></Disclosure>}
    </Disclosure>
  );
}
