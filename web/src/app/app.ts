/** Shared state of the web UI: the client, the logged-in user, the inbox, the session followers, toasts. */
import { Everturn, InboxFollower, ServerError, SessionFollower, type AgentList, type Me, type ToolList } from "@everturn/client";
import { fetchAndDetectLogout } from "./loggedOut";
import { Store } from "./store";
import { language } from "./texts";

export const client = new Everturn({ fetch: fetchAndDetectLogout });

/** null: not known yet; "anonymous": not logged in. */
export const me = new Store<Me | "anonymous" | null>(null);
export const agents = new Store<AgentList | null>(null);
export const tools = new Store<ToolList | null>(null);
export const inbox = new InboxFollower(client);

/** Whether the user has at least this role: viewer < member < approver < owner < operator. */
export function hasRole(role: Me["role"]): boolean {
  const order = ["viewer", "member", "approver", "owner", "operator"];
  const user = me.value;
  return user !== null && user !== "anonymous" && order.indexOf(user.role) >= order.indexOf(role);
}

/** Sessions that are shared with the user to be read, as far as it is known. */
export const readOnlySessions = new Store<ReadonlySet<string>>(new Set());

/** Whether the user may send messages in a session, and change it. The server decides; this hides what it would refuse. */
export function mayWrite(session: string): boolean {
  return hasRole("member") && !readOnlySessions.value.has(session);
}

/** The session whose context panel is open; null: none is. */
export const contextPanel = new Store<string | null>(null);
/** What the conversations that were opened have cost so far, with their sub-agents; as the last report of their context says. */
export const conversationCosts = new Store<ReadonlyMap<string, number>>(new Map());

const followers = new Map<string, SessionFollower>();
const scheduleFrame = (run: () => void) => {
  // A hidden tab draws no frames; its listeners are called all the same.
  if (document.hidden) setTimeout(run, 100);
  else requestAnimationFrame(run);
};

/** The follower of a session; there is one per session. */
export function getSessionFollower(id: string): SessionFollower {
  let follower = followers.get(id);
  if (!follower) followers.set(id, (follower = new SessionFollower(client, id, scheduleFrame)));
  return follower;
}

/** The text of the first message of a session, if it is followed. */
export function firstMessageText(id: string): string {
  for (const message of followers.get(id)?.state.messages.values() ?? []) {
    if (message.role !== "user" || message.hidden) continue;
    return (message.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  }
  return "";
}

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action?: { readonly label: string; readonly run: () => void };
}

export const toasts = new Store<readonly Toast[]>([]);
let count = 0;

const UNREACHABLE = { en: "The server could not be reached. Try again in a moment.", zh: "无法连接服务器，请稍后重试。" };

const LOGGED_OUT = { en: "You are not logged in any more. Log in again, then try again.", zh: "您的登录已失效。请重新登录后再试。" };

/** Text of an error: the server's message, or that the server could not be reached. */
export function errorMessage(error: unknown): string {
  if (error instanceof ServerError && error.status === 401) return LOGGED_OUT[language.value]; // the server's message for 401 is for programs
  const text = error instanceof Error ? error.message : String(error);
  // Messages of browsers for a network error.
  return /^(TypeError: )?(Failed to fetch|NetworkError when|Load failed)/.test(text) ? UNREACHABLE[language.value] : text;
}

/** Show a toast for a while; for an error, its message. */
export function toast(text: unknown, action?: Toast["action"]): void {
  if (text instanceof ServerError && text.status === 401) return; // the banner says so for as long as it is true
  const toast: Toast = { id: ++count, text: errorMessage(text), action };
  toasts.set([...toasts.value, toast]);
  setTimeout(() => dismiss(toast.id), 8000);
}

export function dismiss(id: number): void {
  toasts.set(toasts.value.filter((toast) => toast.id !== id));
}

/** Fetch the agents and their models again, if they were fetched before. */
export function refreshAgents(): void {
  if (agents.value) void client.agents().then((found) => agents.set(found), () => {});
}

/** Await a promise, and show a toast if it fails. */
export async function attempt<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    toast(error);
    return undefined;
  }
}
