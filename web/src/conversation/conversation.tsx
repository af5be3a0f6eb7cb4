/** A conversation: its messages, and where one goes on. Fetched with the first one, so that the page is there at once. */
import { lazy } from "../app/lazy";
import { route } from "../app/route";

export const fetchInside = () => import("./inside");

export const Conversation = lazy<{ session: string; message?: string }>(async () => (await fetchInside()).Inside);

// Who comes by a link to a conversation is not kept waiting for the rest of the page first.
if (route.value.page === "session") void fetchInside();
