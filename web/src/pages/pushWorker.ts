/** Push subscription of this browser: registers the service worker, subscribes, and tells the server. */
import type { PushSubscriptionView, PushView } from "@everturn/client";
import { client } from "../app/app";
import { language } from "../app/texts";

const WORKER = "/push-worker.js";

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): unknown };
}

let workerUrl: string | undefined;

/** The address of the worker, as the Content-Security-Policy wants it. */
function trustedUrl(): string {
  const { trustedTypes } = window as unknown as { trustedTypes?: TrustedTypes };
  // A policy can be made once; it accepts this address alone.
  workerUrl ??= (trustedTypes?.createPolicy("everturn-push", { createScriptURL: () => WORKER }).createScriptURL(WORKER) ?? WORKER) as string;
  return workerUrl;
}

export const isSupported = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

export const fetchPush = () => client.get<PushView>("/api/push");
export const removeSubscription = (id: string) => client.send<void>("DELETE", `/api/push/subscriptions/${encodeURIComponent(id)}`);

/** The subscription of this browser, if it has one. */
export async function currentSubscription(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Subscribe this browser with the key of the server; one with another key is replaced. */
export async function subscribe(key: string, label: string): Promise<PushSubscriptionView> {
  await navigator.serviceWorker.register(trustedUrl(), { scope: "/" });
  const { pushManager } = await navigator.serviceWorker.ready;
  const before = await pushManager.getSubscription();
  if (before && encode(before.options.applicationServerKey) !== key) await before.unsubscribe();
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = subscription.toJSON();
  const site = location.protocol === "https:" ? location.origin : "";
  return client.send<PushSubscriptionView>("POST", "/api/push/subscriptions", { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, key, language: language.value, label, site });
}

/** End the subscription of this browser, and remove the worker. */
export async function unsubscribe(): Promise<void> {
  await (await currentSubscription())?.unsubscribe();
  await (await navigator.serviceWorker.getRegistration("/"))?.unregister();
}

function encode(key: ArrayBuffer | null): string {
  return btoa(String.fromCharCode(...new Uint8Array(key ?? new ArrayBuffer(0)))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
