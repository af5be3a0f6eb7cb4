/** Sending the answer to a gate: once, for exactly what was shown. */
import { ServerError, type AnswerGate, type Gate } from "@everturn/client";
import { useState } from "preact/hooks";
import { client } from "../app/app";

/** Gates whose answer is being sent or was accepted: a second one is not sent, wherever the card is drawn. */
const inFlight = new Set<string>();

export type GateAnswer = Omit<AnswerGate, "hash">;

export interface AnswerState {
  readonly status: "open" | "sending" | "sent";
  readonly problem: ServerError | null;
  readonly send: (answer: GateAnswer) => Promise<boolean>;
}

export function useAnswer(session: string, gate: Gate, onProblem?: (error: ServerError) => void): AnswerState {
  const [status, setStatus] = useState<AnswerState["status"]>(inFlight.has(gate.id) ? "sent" : "open");
  const [problem, setProblem] = useState<ServerError | null>(null);
  const send = async (answer: GateAnswer) => {
    if (inFlight.has(gate.id)) return false;
    inFlight.add(gate.id);
    setStatus("sending");
    setProblem(null);
    try {
      await client.answer(gate.session || session, gate.id, { ...answer, hash: gate.hash });
      setStatus("sent");
      return true;
    } catch (error) {
      inFlight.delete(gate.id);
      const why = error instanceof ServerError ? error : new ServerError(0, "away", String(error));
      setProblem(why);
      onProblem?.(why);
      setStatus("open");
      return false;
    }
  };
  return { status, problem, send };
}
