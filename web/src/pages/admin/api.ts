/** API requests of the pages for administrators: models and their keys, agents, MCP servers, and permission rules. */
import type {
  AgentSettings, AgentSettingsView, AgentVersionList, AllRulesView, DryRunView, ExplainDraft, ExplainView, KeyTestView, McpSettingsView, ModelKeyView,
  ModelSettings, ModelSettingsView, NewMcpSettings, RuleSettingsView, RuleVersionList, SettingsView, StoredRule,
} from "@everturn/client";
import { client } from "../../app/app";

const path = (kind: "keys" | "models" | "agents" | "mcp", name: string) => `/api/settings/${kind}/${encodeURIComponent(name)}`;

export const fetchSettings = () => client.get<SettingsView>("/api/settings");
export const putKey = (vendor: string, key: string) => client.send<ModelKeyView>("PUT", path("keys", vendor), { key });
export const deleteKey = (vendor: string) => client.send<void>("DELETE", path("keys", vendor));
export const testKey = (vendor: string) => client.send<KeyTestView>("POST", `${path("keys", vendor)}/test`);
export const putModel = (name: string, settings: ModelSettings, version: number, key: string) =>
  client.send<ModelSettingsView>("PUT", path("models", name), { settings, version, key });
export const deleteModel = (name: string) => client.send<void>("DELETE", path("models", name));
export const putAgent = (name: string, settings: AgentSettings, version: number) => client.send<AgentSettingsView>("PUT", path("agents", name), { settings, version });
export const deleteAgent = (name: string) => client.send<void>("DELETE", path("agents", name));
export const fetchVersions = (name: string) => client.get<AgentVersionList>(`${path("agents", name)}/versions`);
export const restoreAgent = (name: string, version: number) => client.send<AgentSettingsView>("POST", `${path("agents", name)}/restore`, { version });
export const putMcp = (name: string, server: NewMcpSettings) => client.send<McpSettingsView>("PUT", path("mcp", name), server);
export const deleteMcp = (name: string) => client.send<void>("DELETE", path("mcp", name));

const rules = "/api/settings/rules";
/** Whose calls rules decide: those of all tenants, or those of the caller's tenant. */
export type RuleScope = NonNullable<AllRulesView["scope"]>;
/** The stored rules of a scope; without one, those that the caller may change. */
export const fetchStoredRules = (scope?: RuleScope) => client.get<AllRulesView>(rules, { scope });
export const putRules = (scope: RuleScope, list: readonly StoredRule[], version: number) => client.send<RuleSettingsView>("PUT", `${rules}?scope=${scope}`, { rules: list, version });
export const fetchRuleVersions = (scope: RuleScope) => client.get<RuleVersionList>(`${rules}/versions`, { scope });
export const dryRunRules = (scope: RuleScope, list: readonly StoredRule[], calls: number) => client.send<DryRunView>("POST", `${rules}/dry-run?scope=${scope}`, { rules: list, calls });
export const explainDraft = (scope: RuleScope, request: ExplainDraft) => client.send<ExplainView>("POST", `${rules}/explain?scope=${scope}`, request);
