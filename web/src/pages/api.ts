/** API requests of the settings pages. */
import type {
  ExplainCall, ExplainView, FinishMcpLogin, GrantList, InstructionsView, LoginView, McpList, McpLoginEnd, McpLogins, McpView, MemoryFileView, MemoryList, PromptList, PromptView, PutMemory, PutPrompt, RulesView,
  SetupView, TrustServer,
} from "@everturn/client";
import { client } from "../app/app";

const id = encodeURIComponent;

export const fetchRules = (agent: string) => client.get<RulesView>("/api/rules", { agent: agent || undefined });
export const explainCall = (request: ExplainCall) => client.send<ExplainView>("POST", "/api/explain", request);
export const fetchGrants = () => client.get<GrantList>("/api/grants");
export const revokeGrant = (grant: string) => client.send<void>("DELETE", `/api/grants/${id(grant)}`);
export const fetchMcpServers = () => client.get<McpList>("/api/mcp");
/** Trust in servers that an administrator added has routes of its own, because an administrator need not be an operator. */
const mcpPath = (server: McpView) => `${server.is_stored ? "/api/settings/mcp" : "/api/mcp"}/${id(server.name)}`;
export const trustServer = (server: McpView, seen: TrustServer) => client.send<unknown>("POST", `${mcpPath(server)}/trust`, seen);
export const logInToServer = (server: McpView) => client.send<LoginView>("POST", `/api/mcp/${id(server.name)}/login`);
export const logOutOfServer = (server: McpView) => client.send<void>("DELETE", `/api/mcp/${id(server.name)}/login`);
export const finishMcpLogin = (answer: FinishMcpLogin) => client.send<McpLoginEnd>("POST", "/api/mcp/login", answer);
export const fetchMcpLogins = (server: string) => client.get<McpLogins>(`/api/mcp/${id(server)}/logins`);
export const revokeMcpLogin = (server: string, user: string) => client.send<void>("DELETE", `/api/mcp/${id(server)}/logins/${id(user)}`);
export const retryServer = (server: McpView) => client.send<void>("POST", `${mcpPath(server)}/retry`);
export const fetchMemory = () => client.get<MemoryList>("/api/memory");
export const fetchMemoryFile = (path: string) => client.get<MemoryFileView>("/api/memory/file", { path });
export const writeMemory = (put: PutMemory) => client.send<MemoryFileView>("PUT", "/api/memory/file", put);
export const deleteMemory = (path: string) => client.send<void>("DELETE", `/api/memory/file?path=${id(path)}`);
export const fetchPrompts = () => client.get<PromptList>("/api/prompts");
export const writePrompt = (put: PutPrompt) => client.send<PromptView>("PUT", "/api/prompts", put);
export const deletePrompt = (name: string, shared: boolean) => client.send<void>("DELETE", `/api/prompts?name=${id(name)}&shared=${shared}`);
export type Writable = "shared" | "user" | "session";
const instructionsPath = (session: string) => (session ? `/api/sessions/${id(session)}/instructions` : "/api/instructions");
export const fetchInstructions = (session: string) => client.get<InstructionsView>(instructionsPath(session));
export const writeInstructions = (layer: Writable, text: string, session: string) =>
  client.send<InstructionsView>("PUT", instructionsPath(layer === "session" ? session : ""), layer === "session" ? { text } : { text, shared: layer === "shared" });
export const fetchSetup = () => client.get<SetupView>("/api/setup");
