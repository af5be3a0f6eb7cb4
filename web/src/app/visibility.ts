/** A page that nobody looks at holds no connection for long: a browser has only six to a server, for all tabs together.
 *
 * It is let go after half a minute, at once when another tab of ours is looked at, and never taken in a tab that was opened behind
 * another. What runs on the server runs on, and whoever comes back sees all of it. The inbox goes on: all tabs share one.
 */
import { client, inbox } from "./app";

const GRACE = 30_000;

/** Begin to heed it; the answer ends that. */
export function heedVisibility(): () => void {
  const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("everturn-seen");
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => client.rest(), GRACE);
    else {
      tabs?.postMessage("seen");
      client.wake();
    }
  };
  // A page that the browser keeps for the way back must hold neither a lock nor a connection, or it is not kept.
  const leave = () => {
    client.rest();
    inbox.pause();
  };
  const comeBack = (event: PageTransitionEvent) => {
    if (!event.persisted) return;
    inbox.start();
    look();
  };
  if (tabs) tabs.onmessage = () => document.hidden && client.rest();
  if (document.hidden) client.rest();
  else look();
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", comeBack);
  return () => {
    clearTimeout(timer);
    tabs?.close();
    document.removeEventListener("visibilitychange", look);
    removeEventListener("pagehide", leave);
    removeEventListener("pageshow", comeBack);
  };
}
