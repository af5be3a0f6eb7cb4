/** Conversation, lazily loaded with the first one, so that the first page loads fast. */
import { lazy } from "../app/lazy";
import { route } from "../app/route";

export const preloadConversation = () => import("./conversationView");

export const Conversation = lazy<{ session: string; message?: string }>(async () => (await preloadConversation()).ConversationView);

// A link to a conversation starts the download at once.
if (route.value.page === "session") void preloadConversation();
