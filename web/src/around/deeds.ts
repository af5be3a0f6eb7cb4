/** The commands of the palette: what can be done from anywhere, and what can be done here. */
import { useMemo } from "preact/hooks";
import { isOver, type TurnState } from "@everturn/client";
import { agents, attempt, client, may, me, sessionOf } from "../app/app";
import { leave } from "../app/entering";
import { go, route } from "../app/route";
import { change, settings } from "../app/settings";
import { useStore } from "../app/store";
import { language, words } from "../app/words";
import { modelsOf } from "./choice";
import type { Deed } from "./commands";
import { choose, useChosen } from "./pickers";
import { exportSession, sessions } from "./sessions";

const useWords = words(
  {
    create: "New conversation", inbox: "Open the inbox", permissions: "Open permissions", mcp: "Open MCP servers", usage: "Open usage",
    settings: "Open settings", light: "Light theme", dark: "Dark theme", auto: "Theme of the system", language: "中文界面",
    agent: (name: string) => `Talk to agent ${name}`, model: (name: string) => `Answer with model ${name}`,
    exported: "Export this conversation", stop: "Stop what is running here", out: "Log out",
  },
  {
    create: "新对话", inbox: "打开待办", permissions: "打开权限", mcp: "打开 MCP 服务器", usage: "打开用量",
    settings: "打开设置", light: "浅色主题", dark: "深色主题", auto: "跟随系统主题", language: "English interface",
    agent: (name: string) => `与助手 ${name} 对话`, model: (name: string) => `使用模型 ${name} 回答`,
    exported: "导出此对话", stop: "停止当前运行", out: "退出登录",
  },
);

export function useDeeds(): Deed[] {
  const t = useWords();
  const at = useStore(route);
  const { theme } = useStore(settings);
  const all = useStore(agents)?.agents ?? [];
  const who = useStore(me);
  const session = "session" in at ? at.session : undefined;
  const { agent, model } = useChosen(session);
  return useMemo(() => {
    const deeds: Deed[] = [];
    const put = (id: string, text: string, icon: Deed["icon"], run: () => void) => deeds.push({ id, text, icon, run });
    if (session && may("member")) {
      const running = runningIn(session);
      if (running.length) put("stop", t.stop, "stop", () => running.forEach((turn) => void attempt(client.cancel(session, turn.id))));
    }
    if (may("member")) put("create", t.create, "add", () => go({ page: "new" }));
    if (session && may("member")) put("export", t.exported, "download", () => void exportSession(session, sessions.get(session)?.title ?? ""));
    put("inbox", t.inbox, "inbox", () => go({ page: "inbox" }));
    for (const one of all) if (one.name !== agent?.name) put(`agent ${one.name}`, t.agent(one.name), "branch", () => choose({ agent: one.name }, session));
    for (const one of agent ? modelsOf(agent) : []) if (one !== model) put(`model ${one}`, t.model(one), "server", () => choose({ model: one }, session));
    put("permissions", t.permissions, "lock", () => go({ page: "permissions" }));
    put("mcp", t.mcp, "plug", () => go({ page: "mcp" }));
    put("usage", t.usage, "chart", () => go({ page: "usage" }));
    put("settings", t.settings, "settings", () => go({ page: "settings" }));
    for (const one of ["light", "dark", "auto"] as const) if (one !== theme) put(`theme ${one}`, t[one], "eye", () => change({ theme: one }));
    put("language", t.language, "settings", () => change({ language: language.value === "zh" ? "en" : "zh" }));
    if (who && who !== "stranger" && who.csrf) put("out", t.out, "close", () => void leave());
    return deeds;
  }, [t, session, theme, all, agent, model, who]);
}

/** The turns of a session that go on. */
function runningIn(session: string): TurnState[] {
  return [...sessionOf(session).state.turns.values()].filter((turn) => turn.started > 0 && !isOver(turn));
}
