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

export const wasAnswered = (gate: Gate): boolean => inFlight.has(gate.id);

/** Send an answer with the hash of its gate; null: it was taken, or one is on its way. */
export async function sendAnswer(session: string, gate: Gate, answer: GateAnswer): Promise<ServerError | null> {
  if (inFlight.has(gate.id)) return null;
  inFlight.add(gate.id);
  try {
    await client.answer(gate.session || session, gate.id, { ...answer, hash: gate.hash });
    return null;
  } catch (error) {
    inFlight.delete(gate.id);
    return error instanceof ServerError ? error : new ServerError(0, "away", String(error));
  }
}

export function useAnswer(session: string, gate: Gate, onProblem?: (error: ServerError) => void): AnswerState {
  const [status, setStatus] = useState<AnswerState["status"]>(wasAnswered(gate) ? "sent" : "open");
  const [problem, setProblem] = useState<ServerError | null>(null);
  const send = async (answer: GateAnswer) => {
    if (wasAnswered(gate)) return false;
    setStatus("sending");
    setProblem(null);
    const error = await sendAnswer(session, gate, answer);
    setProblem(error);
    setStatus(error ? "open" : "sent");
    if (error) onProblem?.(error);
    return !error;
  };
  return { status, problem, send };
}
