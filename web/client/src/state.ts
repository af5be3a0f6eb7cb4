/** State of a session as folded from its log. Messages are replaced, never mutated, so a view knows by identity what is new. */
import type {
  CallClaim, CallState, CompactionStarted, Finish, Gate, GateResolution, Grant, LimitReached, Message, PermissionDecided, Phase, Problem, RequestRetried, TurnOptions, Usage,
} from "./types.gen.js";

/** A part that still streams. Its index in `TurnState.live` is its number in the step. */
export interface LivePart {
  readonly kind: "text" | "reasoning" | "call";
  text: string;
  call: string;
  name: string;
}

/** A gate and its answer. */
export interface GateState {
  readonly gate: Gate;
  readonly opened: number;
  resolution: GateResolution | null;
  answered: number;
  claim: CallClaim | null;
  grant: Grant | null;
}

/** What the log says of a call beyond its tool part. */
export interface CallRecord {
  readonly id: string;
  readonly step: number;
  readonly message: string;
  readonly parent: string; // the call whose tool requested this one
  name: string;
  state: CallState;
  tool: string; // the tool that ran; differs from `name` if the name was repaired
  readOnly: boolean;
  idempotent: boolean; // neither, once it has started: it is run at most once
  decision: PermissionDecided | null;
  started: number;
  finished: number;
  isStillRunning: boolean; // finished for the turn while its tool still runs
  late: number; // when a late result arrived
  gates: string[];
  children: { readonly session: string; readonly turn: string }[]; // its sub-agent runs
  waitsFor: string; // what its tool says that it waits for
  progress: string[]; // progress reports while connected; never in the log
}

export interface StepState {
  readonly number: number;
  readonly closing: boolean;
  readonly started: number;
  restarts: number;
  retries: RequestRetried[];
  ended: number;
  finish: Finish | null;
  problem: Problem | null;
  usage: Usage;
}

/** State of a turn. */
export interface TurnState {
  readonly id: string;
  phase: Phase;
  options: TurnOptions;
  parent: string | null;
  command: string; // the key of the command that started it; turns of one command answer the same message, each with a model of its own
  input: string | null; // the message that started it
  answer: string | null; // the message its steps are written into
  tip: string | null;
  started: number;
  ended: number; // 0: it is running
  steps: StepState[];
  live: LivePart[]; // of the step that streams
  wait: string; // what its model request waits for, such as a rate limit; never in the log
  calls: Map<string, CallRecord>;
  gates: Map<string, GateState>;
  compaction: CompactionStarted | null; // a summary of earlier messages is being written
  compactionProblem: Problem | null; // why the last summary could not be written
  limit: LimitReached | null;
  ending: { outcome: "completed" | "error" | "cancelled"; problem: Problem | null; hard: boolean } | null;
  problem: Problem | null;
  reports: readonly Problem[];
  usage: Usage;
}

/** How a person rated an answer; "" has withdrawn it. */
export interface AnswerRating {
  readonly rating: "up" | "down" | "";
  readonly reason: string;
}

/** A revert of files. */
export interface RevertRecord {
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly by: string;
  readonly at: number;
}

export interface SessionState {
  seq: number;
  start: number; // turns that started before this position are not loaded; 1: all are
  title: string;
  /** Whether a person gave the title: nothing else replaces it then. */
  isRenamed: boolean;
  agent: string; // the one that has the session; "": none with a name
  leaf: string | null;
  messages: Map<string, Message>;
  children: Map<string | null, string[]>;
  deleted: Set<string>;
  writing: Map<string, string>; // turn -> the answer its events complete
  calls: Map<string, string>; // call -> the message that contains it
  turns: Map<string, TurnState>;
  gates: Map<string, string>; // gate -> turn
  reverts: RevertRecord[];
  revoked: Set<string>; // grants
  ratings: Map<string, Map<string, AnswerRating>>; // message -> user -> the last rating that counts
}
