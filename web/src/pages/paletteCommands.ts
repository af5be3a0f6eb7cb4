/** Commands of the command palette: global ones, and those of the current page. */
import { useMemo } from "preact/hooks";
import { isOver, type TurnState } from "@everturn/client";
import { agents, attempt, client, hasRole, me, getSessionFollower } from "../app/app";
import { logOut } from "../app/auth";
import { navigate, route } from "../app/route";
import { updateSettings, settings } from "../app/settings";
import { useStore } from "../app/store";
import { language, defineTexts } from "../app/texts";
import { modelsOf } from "./agentChoice";
import type { Command } from "./command";
import { setChoice, useCurrentChoice } from "./pickers";
import { exportSession, sessions } from "./sessions";

const useTexts = defineTexts(
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

export function usePaletteCommands(): Command[] {
  const t = useTexts();
  const currentRoute = useStore(route);
  const { theme } = useStore(settings);
  const all = useStore(agents)?.agents ?? [];
  const user = useStore(me);
  const session = "session" in currentRoute ? currentRoute.session : undefined;
  const { agent, model } = useCurrentChoice(session);
  return useMemo(() => {
    const commands: Command[] = [];
    const add = (id: string, text: string, icon: Command["icon"], run: () => void) => commands.push({ id, text, icon, run });
    if (session && hasRole("member")) {
      const running = runningTurns(session);
      if (running.length) add("stop", t.stop, "stop", () => running.forEach((turn) => void attempt(client.cancel(session, turn.id))));
    }
    if (hasRole("member")) add("create", t.create, "add", () => navigate({ page: "new" }));
    if (session && hasRole("member")) add("export", t.exported, "download", () => void exportSession(session, sessions.get(session)?.title ?? ""));
    add("inbox", t.inbox, "inbox", () => navigate({ page: "inbox" }));
    for (const other of all) if (other.name !== agent?.name) add(`agent ${other.name}`, t.agent(other.name), "branch", () => setChoice({ agent: other.name }, session));
    for (const name of agent ? modelsOf(agent) : []) if (name !== model) add(`model ${name}`, t.model(name), "server", () => setChoice({ model: name }, session));
    add("permissions", t.permissions, "lock", () => navigate({ page: "permissions" }));
    add("mcp", t.mcp, "plug", () => navigate({ page: "mcp" }));
    add("usage", t.usage, "chart", () => navigate({ page: "usage" }));
    add("settings", t.settings, "settings", () => navigate({ page: "settings" }));
    for (const name of ["light", "dark", "auto"] as const) if (name !== theme) add(`theme ${name}`, t[name], "eye", () => updateSettings({ theme: name }));
    add("language", t.language, "settings", () => updateSettings({ language: language.value === "zh" ? "en" : "zh" }));
    if (user && user !== "anonymous" && user.csrf) add("out", t.out, "close", () => void logOut());
    return commands;
  }, [t, session, theme, all, agent, model, user]);
}

/** The running turns of a session. */
function runningTurns(session: string): TurnState[] {
  return [...getSessionFollower(session).state.turns.values()].filter((turn) => turn.started > 0 && !isOver(turn));
}
