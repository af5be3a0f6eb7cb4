/** API requests of the sections about webhooks and inbound hooks. */
import type {
  DeliveryList, DeliveryView, HookCallList, HookList, HookWithSecret, NewHook, NewWebhook, PatchWebhook, ReplayDeliveries, ReplayedDeliveries, WebhookList, WebhookTestView, WebhookView, WebhookWithSecret,
} from "@everturn/client";
import { client } from "../../app/app";

const webhookPath = (webhook: string) => `/api/webhooks/${encodeURIComponent(webhook)}`;
const hookPath = (hook: string) => `/api/settings/hooks/${encodeURIComponent(hook)}`;

export const fetchWebhooks = () => client.get<WebhookList>("/api/webhooks");
export const createWebhook = (made: NewWebhook) => client.send<WebhookWithSecret>("POST", "/api/webhooks", made);
export const updateWebhook = (webhook: string, changes: PatchWebhook) => client.send<WebhookView>("PATCH", webhookPath(webhook), changes);
export const pauseWebhook = (webhook: string) => client.send<WebhookView>("POST", `${webhookPath(webhook)}/pause`);
export const resumeWebhook = (webhook: string) => client.send<WebhookView>("POST", `${webhookPath(webhook)}/resume`);
export const testWebhook = (webhook: string) => client.send<WebhookTestView>("POST", `${webhookPath(webhook)}/test`);
export const rotateWebhook = (webhook: string) => client.send<WebhookWithSecret>("POST", `${webhookPath(webhook)}/secret`);
export const deleteWebhook = (webhook: string) => client.send<void>("DELETE", webhookPath(webhook));
export const replayDeliveries = (webhook: string, which: ReplayDeliveries = {}) => client.send<ReplayedDeliveries>("POST", `${webhookPath(webhook)}/replay`, which);

/** The last deliveries of a webhook in every state, the newest event first. */
export async function fetchDeliveries(webhook: string): Promise<DeliveryView[]> {
  const states = ["pending", "delivered", "dead"] as const;
  const pages = await Promise.all(states.map((state) => client.get<DeliveryList>(`${webhookPath(webhook)}/deliveries`, { state, limit: 100 })));
  return pages.flatMap((page) => page.deliveries).sort((a, b) => b.at - a.at || b.seq - a.seq);
}

export const fetchHooks = () => client.get<HookList>("/api/hooks");
export const putHook = (hook: string, made: NewHook) => client.send<HookWithSecret>("PUT", hookPath(hook), made);
export const rotateHook = (hook: string, secret: string) => client.send<HookWithSecret>("POST", `${hookPath(hook)}/secret`, { secret });
export const deleteHook = (hook: string) => client.send<void>("DELETE", hookPath(hook));
export const fetchCalls = (hook: string) => client.get<HookCallList>(`/api/hooks/${encodeURIComponent(hook)}/calls`);
