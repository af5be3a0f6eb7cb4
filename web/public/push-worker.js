/* Service worker of the web UI: shows push notifications of approvals, and opens what they are about. It has no fetch handler and no cache. */
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const { title, body, tag, url } = event.data ? event.data.json() : {};
  event.waitUntil(self.registration.showNotification(title || "Everturn", { body, tag, data: { url }, icon: "/assets/everturn.svg" }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open((event.notification.data || {}).url));
});

/** Show an address of this server: in a tab of it if there is one, else in a new one. */
async function open(path) {
  const url = new URL(path || "/", self.location.origin);
  if (url.origin !== self.location.origin) return;
  const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find((candidate) => new URL(candidate.url).pathname === "/");
  if (!tab) return void (await self.clients.openWindow(url.href));
  tab.postMessage({ type: "everturn-open", hash: url.hash });
  await tab.focus().catch(() => undefined); // a browser may refuse; the tab shows it all the same
}
