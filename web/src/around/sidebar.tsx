/** What stands at the side: conversations and the search in them, the other pages, and who is logged in. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { inbox, may, me } from "../app/app";
import { leave } from "../app/entering";
import { link, route, type Route } from "../app/route";
import { useStore, useTopics } from "../app/store";
import { words } from "../app/words";
import { Button, Icon, Menu, type IconName } from "../ui/kit";
import { Found } from "./found";
import { openPalette } from "./palette";
import { SessionRows } from "./rows";
import { importSession } from "./sessions";
import "./sidebar.css";

const useWords = words(
  {
    label: "Conversations and pages", create: "New conversation", inbox: "Inbox", waiting: (count: number) => `${count} waiting`,
    search: "Search", clear: "Clear the search", palette: "Commands (Ctrl K)", permissions: "Permissions", mcp: "MCP servers",
    usage: "Usage", settings: "Settings", out: "Log out", bring: "Import a conversation…", account: "You", pages: "Pages",
  },
  {
    label: "对话与页面", create: "新对话", inbox: "待办", waiting: (count: number) => `${count} 项待处理`,
    search: "搜索", clear: "清除搜索", palette: "命令（Ctrl K）", permissions: "权限", mcp: "MCP 服务器",
    usage: "用量", settings: "设置", out: "退出登录", bring: "导入对话…", account: "账户", pages: "页面",
  },
);

export function Sidebar() {
  const t = useWords();
  const [query, setQuery] = useState("");
  return (
    <nav class="sidebar" aria-label={t.label}>
      <div class="top">
        <a class="brand" href={link({ page: "new" })}>Everturn</a>
        <Button kind="quiet" little icon="search" aria-label={t.palette} onClick={openPalette} />
        {may("member") && <a class="button little primary icon" href={link({ page: "new" })} aria-label={t.create} title={t.create}><Icon name="add" /></a>}
      </div>
      <InboxLink />
      <div class="find">
        <input class="input" type="search" value={query} placeholder={t.search} aria-label={t.search} maxLength={1000}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Escape" && query) { event.stopPropagation(); setQuery(""); } }} />
      </div>
      <div class="scroll">{query.trim() ? <Found query={query.trim()} /> : <SessionRows />}</div>
      <Foot />
    </nav>
  );
}

function InboxLink() {
  const t = useWords();
  useTopics(inbox, "gates");
  const count = inbox.gates.filter(({ gate }) => gate.kind !== "client").length; // those are for programs
  return (
    <PageLink page="inbox" icon="inbox" text={t.inbox}>
      {count > 0 && <span class="badge warn" aria-label={t.waiting(count)}>{count}</span>}
    </PageLink>
  );
}

type Plain = Exclude<Route["page"], "new" | "session" | "compare">;

function PageLink({ page, icon, text, children }: { page: Plain; icon: IconName; text: string; children?: ComponentChildren }) {
  const isHere = useStore(route).page === page;
  return (
    <a class="page-link" href={link({ page })} aria-current={isHere ? "page" : undefined}>
      <Icon name={icon} />
      <span class="grow ellipsis">{text}</span>
      {children}
    </a>
  );
}

function Foot() {
  const t = useWords();
  const who = useStore(me);
  const file = useRef<HTMLInputElement>(null);
  if (!who || who === "stranger") return null;
  const items = [
    ...(may("member") ? [{ label: t.bring, icon: "upload" as const, onSelect: () => file.current?.click() }] : []),
    ...(who.csrf ? [{ label: t.out, icon: "close" as const, onSelect: () => void leave() }] : []), // only a login can be left
  ];
  return (
    <div class="foot">
      <PageLink page="permissions" icon="lock" text={t.permissions} />
      <PageLink page="mcp" icon="plug" text={t.mcp} />
      <PageLink page="usage" icon="chart" text={t.usage} />
      <PageLink page="settings" icon="settings" text={t.settings} />
      <div class="who">
        <span class="grow ellipsis" title={`${who.user} · ${who.tenant} · ${who.role}`}>
          {who.user} <span class="muted">· {who.tenant}</span>
        </span>
        {items.length > 0 && <Menu up end button={{ icon: "more", label: t.account }} items={items} />}
        <input ref={file} hidden type="file" accept=".zip,application/zip" aria-label={t.bring}
          onChange={(event) => {
            const [one] = event.currentTarget.files ?? [];
            if (one) void importSession(one);
            event.currentTarget.value = "";
          }} />
      </div>
    </div>
  );
}
