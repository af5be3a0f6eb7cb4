/** Handing in an answer: once, for exactly what was shown. */
import { ServerError, type Answered, type Gate } from "@everturn/client";
import { useState } from "preact/hooks";
import { client } from "../app/app";

/** Gates for which an answer is on its way, or was taken: a second one is not sent, wherever the card is drawn. */
const underway = new Set<string>();

export type Said = Omit<Answered, "hash">;

export interface Answering {
  readonly standing: "open" | "sending" | "sent";
  readonly problem: ServerError | null;
  readonly send: (said: Said) => Promise<boolean>;
}

export function useAnswering(session: string, gate: Gate, onProblem?: (error: ServerError) => void): Answering {
  const [standing, setStanding] = useState<Answering["standing"]>(underway.has(gate.id) ? "sent" : "open");
  const [problem, setProblem] = useState<ServerError | null>(null);
  const send = async (said: Said) => {
    if (underway.has(gate.id)) return false;
    underway.add(gate.id);
    setStanding("sending");
    setProblem(null);
    try {
      await client.answer(gate.session || session, gate.id, { ...said, hash: gate.hash });
      setStanding("sent");
      return true;
    } catch (error) {
      underway.delete(gate.id);
      const why = error instanceof ServerError ? error : new ServerError(0, "away", String(error));
      setProblem(why);
      onProblem?.(why);
      setStanding("open");
      return false;
    }
  };
  return { standing, problem, send };
}
