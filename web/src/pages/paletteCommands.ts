/** Commands of the command palette: global ones, and those of the current page. */
import { useMemo } from "preact/hooks";
import { isOver, type TurnState } from "@everturn/client";
import { agents, attempt, client, contextPanel, hasRole, mayWrite, me, getSessionFollower } from "../app/app";
import { logOut } from "../app/auth";
import { navigate, route } from "../app/route";
import { updateSettings, settings } from "../app/settings";
import { useStore } from "../app/store";
import { language } from "../app/texts";
import { modelsOf } from "./agentChoice";
import type { Command } from "./command";
import { setChoice, useCurrentChoice } from "./pickers";
import { exportSession, sessions } from "./sessions";
import { useTexts } from "../locales/paletteCommands.gen";

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
    if (session && mayWrite(session)) {
      const running = runningTurns(session);
      if (running.length) add("stop", t.stop, "stop", () => running.forEach((turn) => void attempt(client.cancel(session, turn.id))));
    }
    if (hasRole("member")) add("create", t.create, "add", () => navigate({ page: "new" }));
    if (session && hasRole("member")) add("export", t.exported, "download", () => void exportSession(session, sessions.get(session)?.title ?? ""));
    if (session && mayWrite(session)) add("compact", t.compact, "compact", () => contextPanel.set(session));
    add("inbox", t.inbox, "inbox", () => navigate({ page: "inbox" }));
    for (const other of all) if (other.name !== agent?.name) add(`agent ${other.name}`, t.agent(other.name), "branch", () => setChoice({ agent: other.name }, session));
    for (const name of agent ? modelsOf(agent) : []) if (name !== model) add(`model ${name}`, t.model(name), "server", () => setChoice({ model: name }, session));
    add("permissions", t.permissions, "lock", () => navigate({ page: "permissions" }));
    add("mcp", t.mcp, "plug", () => navigate({ page: "mcp" }));
    if (hasRole("owner")) {
      add("models", t.models, "server", () => navigate({ page: "admin", section: "models" }));
      add("agents", t.agents, "branch", () => navigate({ page: "admin", section: "agents" }));
    }
    add("prompts", t.prompts, "edit", () => navigate({ page: "prompts" }));
    add("schedules", t.schedules, "clock", () => navigate({ page: "schedules" }));
    add("memory", t.memory, "file", () => navigate({ page: "memory" }));
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
