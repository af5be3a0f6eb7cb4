/** The session list of the web UI, and export, import and erase of a session. */
import type { PatchSession } from "@everturn/client";
import { attempt, client, inbox, toast } from "../app/app";
import { navigate, route } from "../app/route";
import { SessionList } from "./sessionList";

export const sessions = new SessionList((limit, before) => client.sessions(limit, before), inbox);

/** Export a session to a file. */
export async function exportSession(id: string, title: string): Promise<void> {
  const file = await attempt(client.exportSession(id));
  if (file) saveFile(file, `${fileName(title) || "session"}.zip`);
}

/** Rename, pin, archive or label a session; `undo` is what a toast offers afterwards. */
export async function updateSession(id: string, change: PatchSession, undo?: { text: string; label: string; change: PatchSession }): Promise<boolean> {
  const view = await attempt(client.update(id, change));
  if (!view) return false;
  sessions.change(view);
  if (undo) toast(undo.text, { label: undo.label, run: () => void updateSession(id, undo.change) });
  return true;
}

/** Load the archived sessions. */
export async function loadArchived(): Promise<void> {
  const page = await attempt(client.sessions(200, "", "only"));
  if (page) sessions.keep(page);
}

/** Erase a session for good. */
export async function eraseSession(id: string): Promise<boolean> {
  const isDone = (await attempt(client.erase(id).then(() => true))) === true;
  if (!isDone) return false;
  sessions.remove(id);
  const currentRoute = route.value;
  if ((currentRoute.page === "session" || currentRoute.page === "compare") && currentRoute.session === id) navigate({ page: "new" });
  return true;
}

/** Import an exported session, and open it. */
export async function importSession(file: Blob): Promise<void> {
  const session = await attempt(client.importSession(file));
  if (!session) return;
  sessions.add(session);
  navigate({ page: "session", session: session.id });
}

/** Let the browser save a file. */
export function saveFile(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A title as a file name: only characters that every system accepts. */
export function fileName(title: string): string {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/gu, "").slice(0, 60);
}
