/** Authentication: loads the account after login, notices a login in another tab, logs out. */
import { ServerError } from "@everturn/client";
import { agents, client, inbox, me, getSessionFollower, toast, tools } from "./app";
import { loggedOut } from "./loggedOut";
import { route } from "./route";

const RETRY_DELAY = 2000; // milliseconds until an unreachable server is tried again

/** Load the user, and the agents and tools available to them. */
export async function loadAccount(): Promise<void> {
  // The server saw no login when it sent the page: a request would only be refused, with an error in the console.
  if (me.value === null && document.querySelector('meta[name="everturn-anonymous"]')) return me.set("anonymous");
  try {
    me.set(await client.me());
    loggedOut.set(false);
    inbox.start(); // first: the session list is loaded once the inbox is open
    const [agentList, all] = await Promise.all([client.agents(), client.tools()]);
    agents.set(agentList);
    tools.set(all);
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) return me.set("anonymous");
    toast(error);
    setTimeout(() => void loadAccount(), RETRY_DELAY);
  }
}

/** Check for a login in another tab; then continue where this tab stopped. */
export async function recheckLogin(): Promise<boolean> {
  const before = me.value;
  try {
    const now = await client.me();
    const isSame = before && before !== "anonymous" && before.user === now.user && before.tenant === now.tenant;
    if (before !== "anonymous" && !isSame) location.reload(); // never show one user's data to another
    me.set(now);
  } catch {
    return false;
  }
  loggedOut.set(false);
  inbox.pause();
  if (before === "anonymous") await loadAccount();
  else inbox.start();
  if (route.value.page === "session") {
    const session = getSessionFollower(route.value.session);
    session.pause();
    session.start();
  }
  return true;
}

/** Log this browser out. */
export async function logOut(): Promise<void> {
  try {
    await client.logOut();
  } catch (error) {
    if (!(error instanceof ServerError && error.status === 401)) return toast(error);
  }
  inbox.pause();
  location.replace("/"); // drops everything from memory
}
