/** What a session's log comes to. Messages are replaced, never changed, so a view knows by identity what is new. */
import type {
  CallJudged, CallState, Claimed, Effects, Finish, Gate, Grant, LimitReached, Message, Phase, Problem, TurnOptions, Usage, Verdict,
} from "./types.gen.js";

/** A part that still streams. Its place in `TurnState.live` is its number in the step. */
export interface LivePart {
  readonly kind: "text" | "reasoning" | "call";
  text: string;
  call: string;
  name: string;
}

/** A gate, and what was answered. */
export interface GateState {
  readonly gate: Gate;
  readonly opened: number;
  verdict: Verdict | null;
  answered: number;
  claim: Claimed | null;
  grant: Grant | null;
}

/** What happened to a call beside what its tool part shows. */
export interface CallNote {
  readonly id: string;
  readonly step: number;
  readonly message: string;
  readonly parent: string; // the call whose tool made this one
  name: string;
  state: CallState;
  tool: string; // the one that ran; differs from `name` where that was repaired
  effects: Effects | "";
  judged: CallJudged | null;
  started: number;
  settled: number;
  isOut: boolean; // settled, and its tool runs on
  late: number; // when a late result came
  gates: string[];
  below: { readonly session: string; readonly turn: string }[]; // its sub-turns
  progress: string[]; // what it said of itself while somebody looked; never in the log
}

export interface StepState {
  readonly number: number;
  readonly closing: boolean;
  readonly started: number;
  restarts: number;
  ended: number;
  finish: Finish | null;
  problem: Problem | null;
  usage: Usage;
}

/** A turn as its log tells it. */
export interface TurnState {
  readonly id: string;
  phase: Phase;
  options: TurnOptions;
  parent: string | null;
  input: string | null; // the message that began it
  answer: string | null; // the message its steps are written into
  tip: string | null;
  started: number;
  ended: number; // 0: it goes on
  steps: StepState[];
  live: LivePart[]; // of the step that streams
  calls: Map<string, CallNote>;
  gates: Map<string, GateState>;
  limit: LimitReached | null;
  ending: { outcome: "completed" | "error" | "cancelled"; problem: Problem | null; hard: boolean } | null;
  problem: Problem | null;
  reports: readonly Problem[];
  usage: Usage;
}

/** A revert of files, as the log tells it. */
export interface RevertNote {
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly by: string;
  readonly at: number;
}

export interface SessionState {
  seq: number;
  title: string;
  leaf: string | null;
  messages: Map<string, Message>;
  children: Map<string | null, string[]>;
  deleted: Set<string>;
  writing: Map<string, string>; // turn -> the answer its events complete
  calls: Map<string, string>; // call -> the message it stands in
  turns: Map<string, TurnState>;
  gates: Map<string, string>; // gate -> turn
  reverts: RevertNote[];
  revoked: Set<string>; // grants
}
