/** Comparison: the turns of several models that answer one message side by side. Pure. */
import { path, type Message, type SessionState, type TurnState } from "@everturn/client";

export interface Comparison {
  /** Index of the question in the shown branch. */
  readonly at: number;
  /** The turns that answer it, in the order of their models. */
  readonly turns: readonly string[];
}

/** The comparison at the end of a branch; null if there is none, or if the conversation went on after it. */
export function comparisonAtEnd(state: SessionState, messages: readonly Message[]): Comparison | null {
  const last = state.turns.get(messages.at(-1)?.turn ?? "");
  if (!last?.command) return null;
  const turns = [...state.turns.values()].filter((turn) => turn.command === last.command && !state.deleted.has(turn.answer ?? ""));
  const question = turns.find((turn) => turn.input)?.input;
  const at = messages.findIndex((message) => message.id === question);
  return turns.length > 1 && at >= 0 ? { at, turns: turns.map((turn) => turn.id) } : null;
}

/** The messages of an answer, oldest first: of its branch as far as its turn has written it. */
export function messagesOfTurn(state: SessionState, turn: TurnState): Message[] {
  return path(state, turn.tip).filter((message) => message.turn === turn.id && message.id !== turn.input);
}

/** Tokens of a turn, sent and received. */
export function tokensOf({ usage }: TurnState): number {
  return (usage.input ?? 0) + (usage.output ?? 0);
}
