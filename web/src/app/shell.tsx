/** The frame of the page: the list of sessions at the side, one thing in the middle, and what holds for all of it. */
import { useEffect, useState } from "preact/hooks";
import { Conversation } from "../conversation/conversation";
import { NewConversation } from "../conversation/new";
import { Sidebar } from "../around/sidebar";
import { Palette } from "../around/palette";
import { Button } from "../ui/kit";
import { dismiss, me, toasts } from "./app";
import { Banners } from "./banners";
import { Boundary } from "./boundary";
import { enter } from "./entering";
import { lazy } from "./lazy";
import { Login } from "./login";
import { route } from "./route";
import { useStore } from "./store";
import { words } from "./words";
import { heedVisibility } from "./visibility";
import { useBadge } from "../gates/badge";
import "./shell.css";

const Compare = lazy(async () => (await import("../tree/compare")).Compare);
const Inbox = lazy(async () => (await import("../gates/inbox")).Inbox);
const Permissions = lazy(async () => (await import("../around/permissions")).Permissions);
const Mcp = lazy(async () => (await import("../around/mcp")).Mcp);
const Usage = lazy(async () => (await import("../around/usage")).Usage);
const SettingsPage = lazy(async () => (await import("../around/settings")).SettingsPage);

const useWords = words(
  { menu: "Sessions and pages", skip: "Skip to the conversation", dismiss: "Dismiss", main: "Main" },
  { menu: "对话与页面", skip: "跳到对话", dismiss: "关闭", main: "主要内容" },
);

export function Shell() {
  const who = useStore(me);
  useEffect(() => void enter(), []);
  useEffect(heedVisibility, []);
  if (who === null) return null;
  return who === "stranger" ? <Login /> : <Inside />;
}

function Inside() {
  const t = useWords();
  const [isOpen, setOpen] = useState(false);
  const at = useStore(route);
  useBadge();
  useEffect(() => setOpen(false), [at]);
  useEffect(() => {
    if (!isOpen) return;
    document.querySelector<HTMLElement>(".sidebar a")?.focus();
    const close = (event: KeyboardEvent) => event.key === "Escape" && !event.defaultPrevented && setOpen(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [isOpen]);
  return (
    <div class="shell" data-side={isOpen ? "open" : "closed"}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{t.skip}</a>
      <Boundary name="sidebar"><Sidebar /></Boundary>
      <div class="scrim" onClick={() => setOpen(false)} />
      <main id="main" tabIndex={-1} aria-label={t.main}>
        <Button class="open-side" kind="quiet" icon="menu" aria-label={t.menu} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
        <Banners />
        <Boundary name={at.page} of={at}><Middle /></Boundary>
      </main>
      <Boundary name="palette"><Palette /></Boundary>
      <Toasts />
    </div>
  );
}

function Middle() {
  const at = useStore(route);
  switch (at.page) {
    case "new":
      return <NewConversation />;
    case "session":
      return <Conversation key={at.session} session={at.session} message={at.message} />;
    case "compare":
      return <Compare session={at.session} left={at.left} right={at.right} />;
    case "inbox":
      return <Inbox />;
    case "permissions":
      return <Permissions />;
    case "mcp":
      return <Mcp />;
    case "usage":
      return <Usage />;
    case "settings":
      return <SettingsPage />;
  }
}

function Toasts() {
  const t = useWords();
  const all = useStore(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {all.map((one) => (
        <div class="toast" key={one.id}>
          <span class="grow">{one.text}</span>
          {one.action && <Button little onClick={() => { dismiss(one.id); one.action!.run(); }}>{one.action.label}</Button>}
          <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={() => dismiss(one.id)} />
        </div>
      ))}
    </div>
  );
}
