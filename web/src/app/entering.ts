/** Coming in, going out, and coming in again. */
import { ServerError } from "@everturn/client";
import { agents, client, inbox, me, sessionOf, toast, tools } from "./app";
import { ended } from "./ended";
import { route } from "./route";

const AGAIN = 2000; // milliseconds until a server that was away is asked again

/** Find out who is here, and what there is for them. */
export async function enter(): Promise<void> {
  try {
    me.set(await client.me());
    ended.set(false);
    inbox.start(); // first: the list of conversations is read once it is open
    const [some, all] = await Promise.all([client.agents(), client.tools()]);
    agents.set(some);
    tools.set(all);
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) return me.set("stranger");
    toast(error);
    setTimeout(() => void enter(), AGAIN);
  }
}

/** Look whether somebody has logged in meanwhile, in another tab; then go on where this one stopped. */
export async function comeBack(): Promise<boolean> {
  const before = me.value;
  try {
    const now = await client.me();
    const isSame = before && before !== "stranger" && before.user === now.user && before.tenant === now.tenant;
    if (before !== "stranger" && !isSame) location.reload(); // nothing of one person is shown to another
    me.set(now);
  } catch {
    return false;
  }
  ended.set(false);
  inbox.pause();
  if (before === "stranger") await enter();
  else inbox.start();
  if (route.value.page === "session") {
    const session = sessionOf(route.value.session);
    session.pause();
    session.start();
  }
  return true;
}

/** Log this browser out. */
export async function leave(): Promise<void> {
  try {
    await client.logOut();
  } catch (error) {
    if (!(error instanceof ServerError && error.status === 401)) return toast(error);
  }
  inbox.pause();
  location.replace("/"); // all that was read is gone from memory with it
}
