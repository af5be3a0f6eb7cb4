/** Sidebar: sessions and search, links to the other pages, account. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { inbox, hasRole, me } from "../app/app";
import { Brand } from "../app/branding";
import { logOut } from "../app/auth";
import { hrefFor, navigate, route, type Route } from "../app/route";
import { settings, updateSettings } from "../app/settings";
import { useStore, useTopics } from "../app/store";
import { Button, Icon, Menu, type IconName } from "../ui/components";
import { SearchResults } from "./searchResults";
import { openPalette } from "./palette";
import { SessionRows } from "./sessionRows";
import { importSession } from "./sessions";
import "./sidebar.css";
import { useTexts } from "../locales/sidebar.gen";

export function Sidebar() {
  const t = useTexts();
  const [query, setQuery] = useState("");
  const isNarrow = useStore(settings).sidebar === "narrow";
  return (
    <nav class="sidebar" aria-label={t.label}>
      <div class="top">
        <a class="brand" href={hrefFor({ page: "new" })}><Brand /></a>
        <Button class="toggle" kind="quiet" little icon="sidebar" aria-label={isNarrow ? t.expand : t.collapse} aria-expanded={!isNarrow} onClick={() => updateSettings({ sidebar: isNarrow ? "wide" : "narrow" })} />
        <Button kind="quiet" little icon="search" aria-label={t.palette} onClick={openPalette} />
        {hasRole("member") && <a class="button little primary icon" href={hrefFor({ page: "new" })} aria-label={t.create} title={t.create}><Icon name="add" /></a>}
      </div>
      <InboxLink />
      <div class="find">
        <input class="input" type="search" value={query} placeholder={t.search} aria-label={t.search} maxLength={1000}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Escape" && query) { event.stopPropagation(); setQuery(""); } }} />
      </div>
      <div class="scroll">{query.trim() ? <SearchResults query={query.trim()} /> : <SessionRows />}</div>
      <SidebarFooter />
    </nav>
  );
}

function InboxLink() {
  const t = useTexts();
  useTopics(inbox, "gates");
  const count = inbox.gates.filter(({ gate }) => gate.kind !== "client").length; // those are for client programs
  return (
    <PageLink page="inbox" icon="inbox" text={t.inbox}>
      {count > 0 && <span class="badge warn" aria-label={t.waiting(count)}>{count}</span>}
    </PageLink>
  );
}

type PlainPage = Exclude<Route["page"], "new" | "link" | "invite" | "admin" | "session" | "compare" | "trace" | "tree">;

function PageLink({ page, icon, text, children }: { page: PlainPage; icon: IconName; text: string; children?: ComponentChildren }) {
  const isCurrent = useStore(route).page === page;
  return (
    <a class="page-link" href={hrefFor({ page })} title={text} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={icon} />
      <span class="grow ellipsis">{text}</span>
      {children}
    </a>
  );
}

function AdminLink({ text }: { text: string }) {
  const isCurrent = useStore(route).page === "admin";
  return (
    <a class="page-link" href={hrefFor({ page: "admin", section: "" })} title={text} aria-current={isCurrent ? "page" : undefined}>
      <Icon name="people" />
      <span class="grow ellipsis">{text}</span>
    </a>
  );
}

function SidebarFooter() {
  const t = useTexts();
  const user = useStore(me);
  const file = useRef<HTMLInputElement>(null);
  if (!user || user === "anonymous") return null;
  const items = [
    { label: t.prompts, icon: "edit" as const, onSelect: () => navigate({ page: "prompts" }) },
    { label: t.schedules, icon: "clock" as const, onSelect: () => navigate({ page: "schedules" }) },
    { label: t.memory, icon: "file" as const, onSelect: () => navigate({ page: "memory" }) },
    ...(hasRole("member") ? [{ label: t.bring, icon: "upload" as const, onSelect: () => file.current?.click() }] : []),
    ...(user.csrf ? [{ label: t.out, icon: "close" as const, onSelect: () => void logOut() }] : []), // only a cookie login can be logged out
  ];
  return (
    <div class="foot">
      <PageLink page="permissions" icon="lock" text={t.permissions} />
      <PageLink page="mcp" icon="plug" text={t.mcp} />
      <PageLink page="usage" icon="chart" text={t.usage} />
      {hasRole("owner") && <AdminLink text={t.admin} />}
      <PageLink page="settings" icon="settings" text={t.settings} />
      <div class="account">
        <span class="grow ellipsis" title={`${user.user} · ${user.tenant} · ${user.role}`}>
          {user.user} <span class="muted">· {user.tenant}</span>
        </span>
        {items.length > 0 && <Menu up end button={{ icon: "more", label: t.account }} items={items} />}
        <input ref={file} hidden type="file" accept=".zip,application/zip" aria-label={t.bring}
          onChange={(event) => {
            const [file] = event.currentTarget.files ?? [];
            if (file) void importSession(file);
            event.currentTarget.value = "";
          }} />
      </div>
    </div>
  );
}
