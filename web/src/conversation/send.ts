/** Sending a message: it is kept until the server has admitted it, and retried with the same idempotency key. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ServerError, type Message, type MessageReceipt, type SessionFollower } from "@everturn/client";
import { client, errorMessage, tools } from "../app/app";
import { language } from "../app/texts";
import { currentChoice } from "../pages/pickers";
import { clientTools } from "../sandbox/tools";
import type { PendingMessage } from "./drafts";
import { rememberParameters, takeNewParameters } from "./parameters";

export interface SendState {
  readonly pending: PendingMessage | null;
  readonly problem: string;
  send(pending: PendingMessage): void;
  retry(): void;
  /** Give up; returns the message. */
  discard(): PendingMessage | null;
}

export function useSend(
  session: SessionFollower | undefined,
  edited: Message | undefined,
  first: PendingMessage | null,
  onSent: (sent: MessageReceipt) => void,
  unknown: string,
): SendState {
  const [pending, setPending] = useState<PendingMessage | null>(first);
  const [problem, setProblem] = useState(first ? unknown : "");
  const isMounted = useRef(true);
  useEffect(() => () => { isMounted.current = false; }, []);
  const send = async (message: PendingMessage) => {
    setPending(message);
    setProblem("");
    try {
      const sent = await postMessage(session, edited, message);
      if (!isMounted.current) return;
      setPending(null);
      onSent(sent);
    } catch (error) {
      if (isMounted.current) setProblem(errorMessage(error));
    }
  };
  return {
    pending,
    problem,
    send: (message) => void send(message),
    retry: () => pending && void send(pending),
    discard: () => {
      setPending(null);
      setProblem("");
      return pending;
    },
  };
}

export const COMPACT = "/compact";

/** The focus of `/compact [focus]`; null if a text is something else. */
export function compactFocus(text: string): string | null {
  const found = /^\/compact(?:\s+([^]*))?$/.exec(text);
  return found && (found[1] ?? "").trim();
}

const NOTHING = { en: "There is no conversation to compact yet.", zh: "还没有可压缩的对话。" };

async function postMessage(session: SessionFollower | undefined, edited: Message | undefined, { key, text, files, busy, models, temporary }: PendingMessage): Promise<MessageReceipt> {
  const { agent, model } = currentChoice(session?.id);
  const names = files.map((file) => file.file);
  if (session && edited) return client.edit(session.id, edited.id, { text, files: names, model, at_step_limit: "ask" }, key);
  const focus = files.length ? null : compactFocus(text);
  if (focus !== null && !session) throw new Error(NOTHING[language.value]);
  if (focus !== null && session) return client.compact(session.id, { focus }, key);
  // Without knowing the agent's tools ours could have the same name, and the whole message would be refused.
  const known = tools.value ?? (await client.tools().catch(() => null));
  const clients = known ? clientTools(new Set(known.tools.map((tool) => tool.name))) : [];
  const comparison = models ? { model: models[0]!, compare_with: models.slice(1) } : { model };
  const body = { text, files: names, agent, ...comparison, clients, at_step_limit: "ask" as const };
  if (!session) {
    const sent = await client.startSession({ ...body, temporary, parameters: takeNewParameters() }, key);
    rememberParameters("", {});
    return sent;
  }
  try {
    return await client.sendMessage(session.id, { ...body, busy }, key);
  } catch (error) {
    // Where a turn cannot be steered the message is queued; nothing was admitted, so the key is unused.
    if (busy === "steer" && error instanceof ServerError && (error.status === 422 || error.status === 409)) return client.sendMessage(session.id, { ...body, busy: "queue" }, key);
    throw error;
  }
}
