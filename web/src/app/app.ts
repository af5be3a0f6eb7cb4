/** What every part of the page shares: the client, who is logged in, the inbox, the sessions that are followed. */
import { Everturn, InboxFollower, ServerError, SessionFollower, type AgentList, type Me, type ToolList } from "@everturn/client";
import { watched } from "./ended";
import { Store } from "./store";
import { language } from "./words";

export const client = new Everturn({ fetch: watched });

/** null: not known yet; "stranger": nobody is logged in. */
export const me = new Store<Me | "stranger" | null>(null);
export const agents = new Store<AgentList | null>(null);
export const tools = new Store<ToolList | null>(null);
export const inbox = new InboxFollower(client);

/** Whether there is somebody who may: viewer < member < approver < owner < operator. */
export function may(role: Me["role"]): boolean {
  const order = ["viewer", "member", "approver", "owner", "operator"];
  const who = me.value;
  return who !== null && who !== "stranger" && order.indexOf(who.role) >= order.indexOf(role);
}

const followed = new Map<string, SessionFollower>();
const onFrame = (run: () => void) => {
  // A hidden page draws no frames; it is told all the same.
  if (document.hidden) setTimeout(run, 100);
  else requestAnimationFrame(run);
};

/** The one follower of a session in this page. */
export function sessionOf(id: string): SessionFollower {
  let follower = followed.get(id);
  if (!follower) followed.set(id, (follower = new SessionFollower(client, id, onFrame)));
  return follower;
}

/** The text of the first message of a session, if this page follows it. */
export function firstSaid(id: string): string {
  for (const message of followed.get(id)?.state.messages.values() ?? []) {
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

const AWAY = { en: "The server could not be reached. Try again in a moment.", zh: "无法连接服务器，请稍后重试。" };

const LOGGED_OUT = { en: "You are not logged in any more. Log in again, then try again.", zh: "您的登录已失效。请重新登录后再试。" };

/** A failure in words: what the server said, or that it said nothing. */
export function explain(error: unknown): string {
  if (error instanceof ServerError && error.status === 401) return LOGGED_OUT[language.value]; // what it says is for programs
  const text = error instanceof Error ? error.message : String(error);
  // What the browsers say when nobody answers.
  return /^(TypeError: )?(Failed to fetch|NetworkError when|Load failed)/.test(text) ? AWAY[language.value] : text;
}

/** Say something for a while; a failure says what the server said to do next. */
export function toast(text: unknown, action?: Toast["action"]): void {
  if (text instanceof ServerError && text.status === 401) return; // a line above the page says it, for as long as it holds
  const one: Toast = { id: ++count, text: explain(text), action };
  toasts.set([...toasts.value, one]);
  setTimeout(() => dismiss(one.id), 8000);
}

export function dismiss(id: number): void {
  toasts.set(toasts.value.filter((one) => one.id !== id));
}

/** Do something that may fail, and say so if it does. */
export async function attempt<T>(deed: Promise<T>): Promise<T | undefined> {
  try {
    return await deed;
  } catch (error) {
    toast(error);
    return undefined;
  }
}
