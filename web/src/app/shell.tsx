/** App shell: sidebar, main page, banners, command palette and toasts. */
import { useEffect, useState } from "preact/hooks";
import { Conversation } from "../conversation/conversation";
import { NewConversation } from "../conversation/newConversation";
import { Sidebar } from "../pages/sidebar";
import { Palette } from "../pages/palette";
import { Button, Icon } from "../ui/components";
import { contextPanel, dismiss, hasRole, me, toasts } from "./app";
import { Banners } from "./banners";
import { ErrorBoundary } from "./errorBoundary";
import { loadAccount } from "./auth";
import { lazy } from "./lazy";
import { hrefFor, route } from "./route";
import { settings } from "./settings";
import { useStore } from "./store";
import { watchVisibility } from "./visibility";
import { useBadge } from "../gates/badge";
import "./shell.css";
import { useTexts } from "../locales/shell.gen";

const ContextPanel = lazy(async () => (await import("../conversation/contextPanel")).ContextPanel, true);
const OpenLink = lazy(async () => (await import("../conversation/openLink")).OpenLink);
const Login = lazy(async () => (await import("./login")).Login);
const Invite = lazy(async () => (await import("./invite")).Invite);
const Admin = lazy(async () => (await import("../pages/admin/admin")).Admin);
const NotFound = lazy(async () => (await import("./notFound")).NotFound);
const Compare = lazy(async () => (await import("../tree/compare")).Compare);
const TracePage = lazy(async () => (await import("../trace/tracePage")).TracePage);
const TreePage = lazy(async () => (await import("../tree/treePage")).TreePage);
const Inbox = lazy(async () => (await import("../gates/inbox")).Inbox);
const Permissions = lazy(async () => (await import("../pages/permissions")).Permissions);
const Mcp = lazy(async () => (await import("../pages/mcp")).Mcp);
const Prompts = lazy(async () => (await import("../pages/prompts")).Prompts);
const Memory = lazy(async () => (await import("../pages/memory")).Memory);
const Schedules = lazy(async () => (await import("../pages/schedules/schedules")).Schedules);
const Usage = lazy(async () => (await import("../pages/usage")).Usage);
const SettingsPage = lazy(async () => (await import("../pages/settings")).SettingsPage);

export function Shell() {
  const user = useStore(me);
  const currentRoute = useStore(route);
  useEffect(() => void loadAccount(), []);
  useEffect(watchVisibility, []);
  if (user === null) return null;
  if (currentRoute.page === "invite") return <Invite key={currentRoute.token} token={currentRoute.token} />;
  return user === "anonymous" ? <Login /> : <SignedInShell />;
}

function SignedInShell() {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  const currentRoute = useStore(route);
  const shownContext = useStore(contextPanel);
  const { sidebar } = useStore(settings);
  useBadge();
  const canBeSeen = currentRoute.page !== "new"; // an empty page shows nothing that others look at, and loads less
  useEffect(() => {
    if (!canBeSeen) return;
    let stop: (() => void) | undefined;
    let isOver = false;
    import("./presence").then(({ watchPresence }) => { if (!isOver) stop = watchPresence(); }, () => {}); // without it nobody is shown
    return () => {
      isOver = true;
      stop?.();
    };
  }, [canBeSeen]);
  useEffect(() => setOpen(false), [currentRoute]);
  useEffect(() => {
    if (!isOpen) return;
    document.querySelector<HTMLElement>(".sidebar a")?.focus();
    const close = (event: KeyboardEvent) => event.key === "Escape" && !event.defaultPrevented && setOpen(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [isOpen]);
  return (
    <div class="shell" data-side={isOpen ? "open" : "closed"} data-sidebar={sidebar}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{t.skip}</a>
      <ErrorBoundary name="sidebar"><Sidebar /></ErrorBoundary>
      <div class="scrim" onClick={() => setOpen(false)} />
      <main id="main" tabIndex={-1} aria-label={t.main}>
        <Button class="open-side" kind="quiet" icon="menu" aria-label={t.menu} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
        {currentRoute.page !== "session" && currentRoute.page !== "new" && hasRole("member") && <a class="button quiet icon open-new" href={hrefFor({ page: "new" })} aria-label={t.create} title={t.create}><Icon name="add" /></a>}
        <Banners />
        <ErrorBoundary name={currentRoute.page} resetKey={currentRoute}><MainPage /></ErrorBoundary>
      </main>
      <ErrorBoundary name="palette"><Palette /></ErrorBoundary>
      {shownContext && <ErrorBoundary name="context"><ContextPanel key={shownContext} session={shownContext} onClose={() => contextPanel.set(null)} /></ErrorBoundary>}
      <Toasts />
    </div>
  );
}

function MainPage() {
  const currentRoute = useStore(route);
  switch (currentRoute.page) {
    case "new":
      return <NewConversation />;
    case "link":
      return <OpenLink key={currentRoute.link} link={currentRoute.link} />;
    case "admin":
      return <Admin section={currentRoute.section} />;
    case "invite":
      return null; // the shell shows it without the sidebar
    case "session":
      return <Conversation key={currentRoute.session} session={currentRoute.session} message={currentRoute.message} />;
    case "compare":
      return <Compare session={currentRoute.session} left={currentRoute.left} right={currentRoute.right} />;
    case "trace":
      return <TracePage key={currentRoute.session} session={currentRoute.session} turn={currentRoute.turn} other={currentRoute.other} />;
    case "tree":
      return <TreePage key={currentRoute.session} session={currentRoute.session} />;
    case "inbox":
      return <Inbox />;
    case "permissions":
      return <Permissions />;
    case "mcp":
      return <Mcp />;
    case "prompts":
      return <Prompts />;
    case "memory":
      return <Memory />;
    case "schedules":
      return <Schedules />;
    case "unknown":
      return <NotFound />;
    case "usage":
      return <Usage />;
    case "settings":
      return <SettingsPage />;
  }
}

function Toasts() {
  const t = useTexts();
  const all = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {all.map((toast) => (
        <div class="toast" key={toast.id}>
          <span class="grow">{toast.text}</span>
          {toast.action && <Button little onClick={() => { dismiss(toast.id); toast.action!.run(); }}>{toast.action.label}</Button>}
          <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
