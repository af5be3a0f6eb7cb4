/** The one list of sessions of this page, and what can be done to a session as a whole. */
import { attempt, client, inbox } from "../app/app";
import { go, route } from "../app/route";
import { SessionList } from "./list";

export const sessions = new SessionList((limit, before) => client.sessions(limit, before), inbox);

/** Save a session as a file. */
export async function exportSession(id: string, title: string): Promise<void> {
  const file = await attempt(client.exported(id));
  if (file) save(file, `${fileName(title) || "session"}.zip`);
}

/** Take everything out of a session, for good. */
export async function eraseSession(id: string): Promise<boolean> {
  const isDone = (await attempt(client.erase(id).then(() => true))) === true;
  if (!isDone) return false;
  sessions.forget(id);
  const at = route.value;
  if ((at.page === "session" || at.page === "compare") && at.session === id) go({ page: "new" });
  return true;
}

/** Make a session from a file that was exported, and go there. */
export async function importSession(file: Blob): Promise<void> {
  const session = await attempt(client.bringIn(file));
  if (!session) return;
  sessions.add(session);
  go({ page: "session", session: session.id });
}

/** Let the browser save some bytes. */
export function save(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A title as the name of a file: only what every system takes. */
export function fileName(title: string): string {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/gu, "").slice(0, 60);
}
