/** A message on its way: it is kept until the server has said that it is safe, and tried again as the same one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ServerError, type Message, type Sent, type SessionFollower } from "@everturn/client";
import { client, explain, tools } from "../app/app";
import { chosen } from "../around/pickers";
import { clientTools } from "../sandbox/tools";
import type { Pending } from "./drafts";

export interface Sending {
  readonly pending: Pending | null;
  readonly problem: string;
  send(pending: Pending): void;
  again(): void;
  /** Give up: what it was comes back. */
  drop(): Pending | null;
}

export function useSending(
  session: SessionFollower | undefined,
  edited: Message | undefined,
  first: Pending | null,
  onSent: (sent: Sent) => void,
  unknown: string,
): Sending {
  const [pending, setPending] = useState<Pending | null>(first);
  const [problem, setProblem] = useState(first ? unknown : "");
  const isHere = useRef(true);
  useEffect(() => () => { isHere.current = false; }, []);
  const send = async (one: Pending) => {
    setPending(one);
    setProblem("");
    try {
      const sent = await put(session, edited, one);
      if (!isHere.current) return;
      setPending(null);
      onSent(sent);
    } catch (error) {
      if (isHere.current) setProblem(explain(error));
    }
  };
  return {
    pending,
    problem,
    send: (one) => void send(one),
    again: () => pending && void send(pending),
    drop: () => {
      setPending(null);
      setProblem("");
      return pending;
    },
  };
}

async function put(session: SessionFollower | undefined, edited: Message | undefined, { key, text, files, busy }: Pending): Promise<Sent> {
  const { agent, model } = chosen(session?.id);
  const names = files.map((one) => one.file);
  if (session && edited) return client.edit(session.id, edited.id, { text, files: names, model }, key);
  // Without knowing the agent's own tools ours could have a name of theirs, and the whole message would be refused.
  const known = tools.value ?? (await client.tools().catch(() => null));
  const clients = known ? clientTools(new Set(known.tools.map((tool) => tool.name))) : [];
  const said = { text, files: names, agent, model, clients };
  if (!session) return client.begin(said, key);
  try {
    return await client.say(session.id, { ...said, busy }, key);
  } catch (error) {
    // Where a turn cannot be steered the message waits for its end; nothing was admitted, so the key is free.
    if (busy === "steer" && error instanceof ServerError && (error.status === 422 || error.status === 409)) return client.say(session.id, { ...said, busy: "queue" }, key);
    throw error;
  }
}
