/** Page visibility: a hidden tab closes its connections, because a browser has only six per server for all tabs together.
 *
 * They are closed after half a minute, at once when another tab of the UI becomes visible, and never opened in a tab that was opened
 * in the background. Turns keep running on the server, and a tab that becomes visible catches up. The inbox stays open: all tabs share it.
 */
import { client, inbox } from "./app";

const GRACE = 30_000;

/** Start watching; returns the function that stops it. */
export function watchVisibility(): () => void {
  const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("everturn-seen");
  let timer: ReturnType<typeof setTimeout> | undefined;
  const update = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => client.suspend(), GRACE);
    else {
      tabs?.postMessage("seen");
      client.resume();
    }
  };
  // A page in the back/forward cache must hold neither a lock nor a connection, or it is not cached.
  const onHide = () => {
    client.suspend();
    inbox.pause();
  };
  const onShow = (event: PageTransitionEvent) => {
    if (!event.persisted) return;
    inbox.start();
    update();
  };
  if (tabs) tabs.onmessage = () => document.hidden && client.suspend();
  if (document.hidden) client.suspend();
  else update();
  document.addEventListener("visibilitychange", update);
  addEventListener("pagehide", onHide);
  addEventListener("pageshow", onShow);
  return () => {
    clearTimeout(timer);
    tabs?.close();
    document.removeEventListener("visibilitychange", update);
    removeEventListener("pagehide", onHide);
    removeEventListener("pageshow", onShow);
  };
}
