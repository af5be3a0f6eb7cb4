/** Converts a folded session to what assistant-ui draws: the whole tree, so that every version is in the branch picker. */
import { fromThreadMessageLike, type ExportedMessageRepository, type ThreadMessage, type ThreadMessageLike } from "@assistant-ui/react";
import {
  isOver, openGates, type CallRecord, type Gate, type GateState, type LivePart, type Message, type Part, type SessionState, type ToolPart,
  type TurnState,
} from "@everturn/client";

type Content = Exclude<ThreadMessageLike["content"], string>[number];
type Approval = NonNullable<Extract<Content, { type: "tool-call" }>["approval"]>;
type Status = NonNullable<ThreadMessageLike["status"]>;

/** Cache of converted messages whose turn is over: they do not change, and need not be converted again with every delta. */
export type ConvertedMessages = WeakMap<Message, ThreadMessage>;

export function convert(state: SessionState, converted: ConvertedMessages = new WeakMap()): ExportedMessageRepository {
  const messages: ExportedMessageRepository["messages"] = [];
  for (const message of state.messages.values()) {
    if (message.hidden || state.deleted.has(message.id)) continue;
    messages.push({ message: convertMessage(state, message, converted), parentId: visibleId(state, message.parent) });
  }
  return { headId: visibleId(state, state.leaf), messages };
}

/** A message, or its nearest visible ancestor. */
function visibleId(state: SessionState, id: string | null): string | null {
  let message = id === null ? undefined : state.messages.get(id);
  while (message?.hidden) message = message.parent === null ? undefined : state.messages.get(message.parent);
  return message?.id ?? null;
}

function convertMessage(state: SessionState, message: Message, converted: ConvertedMessages): ThreadMessage {
  const known = converted.get(message);
  if (known) return known;
  const turn = message.turn ? state.turns.get(message.turn) : undefined;
  const status = message.role === "assistant" ? statusOf(turn, message) : COMPLETE;
  const like = { ...likeOf(message, turn), id: message.id, metadata: { custom: { by: message.by ?? "" } } };
  const threadMessage = fromThreadMessageLike(message.role === "assistant" ? { ...like, status } : like, message.id, status);
  if (!turn || (isOver(turn) && ![...turn.calls.values()].some((call) => call.isStillRunning))) converted.set(message, threadMessage);
  return threadMessage;
}

const COMPLETE: Status = { type: "complete", reason: "stop" };

function statusOf(turn: TurnState | undefined, message: Message): Status {
  if (!turn || turn.answer !== message.id) return COMPLETE;
  if (!isOver(turn)) return openGates(turn).length ? { type: "requires-action", reason: "interrupt" } : { type: "running" };
  if (turn.phase === "cancelled") return { type: "incomplete", reason: "cancelled" };
  return turn.phase === "error" ? { type: "incomplete", reason: "error", error: turn.problem?.text ?? "" } : COMPLETE;
}

function likeOf(message: Message, turn: TurnState | undefined): ThreadMessageLike {
  const { role, parts = [] } = message;
  if (role === "notice") return { role: "system", content: [{ type: "text", text: parts.map((part) => ("text" in part ? part.text : "")).join("") }] };
  const content = parts.flatMap((part) => convertPart(part, turn));
  if (turn?.answer === message.id) content.push(...turn.live.flatMap(convertLive));
  return { role, content };
}

function convertPart(part: Part, turn: TurnState | undefined): Content[] {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text ? [{ type: part.type, text: part.text }] : [];
    case "tool":
      return [convertCall(part, turn)];
    case "step":
      return [{ type: "data", name: "step", data: { step: part.step, finish: part.finish, usage: part.usage ?? {} } }];
    case "file":
    case "files":
    case "summary":
    case "cleared":
    case "context":
    case "notice":
    case "provider_tool":
      return [{ type: "data", name: part.type, data: part }];
  }
}

function convertLive(part: LivePart): Content[] {
  if (part.kind !== "call") return part.text ? [{ type: part.kind, text: part.text }] : [];
  return [{ type: "tool-call", toolCallId: part.call, toolName: part.name, args: {}, argsText: part.text }];
}

const FAILED = ["failed", "denied", "cancelled", "outcome_unknown"];

function convertCall(part: ToolPart, turn: TurnState | undefined): Content {
  const argsText = part.used || part.arguments;
  const note = turn?.calls.get(part.call);
  const gates = (note?.gates ?? []).flatMap((id) => turn!.gates.get(id) ?? []);
  const decision = gates.findLast(({ gate }) => isDecision(gate));
  const approval = decision && approvalOf(decision, note!);
  // The reviewer of a result has to see it; the model does not see it before it is approved.
  const review = decision?.gate.kind === "result" && !decision.resolution ? decision.gate.output : null;
  const output = part.late ?? part.output ?? review;
  return {
    type: "tool-call", toolCallId: part.call, toolName: part.name, argsText, args: parseArguments(argsText),
    ...(output && { result: output.text, isError: FAILED.includes(part.state ?? "") }),
    ...(approval && { approval }),
    ...(part.parent && { parentId: part.parent }),
  };
}

/** Whether a gate is answered with yes or no. Forms, client calls and manual calls need more than this draws. */
function isDecision({ kind = "call" }: Gate): boolean {
  return ["call", "result", "loop", "egress"].includes(kind);
}

function approvalOf({ gate, resolution }: GateState, call: CallRecord): Approval {
  const always = (gate.offers ?? []).map((rule) => [rule.tool, ...Object.values(rule.match ?? {})].join(" "));
  const options: Approval["options"] = [
    { id: "once", kind: "allow-once" },
    ...(always.length ? [{ id: "always", kind: "allow-always", grants: always }] : []),
    { id: "deny", kind: "reject-once" },
  ];
  const isPast = !resolution && !["asking", "reviewing"].includes(call.state);
  return {
    id: gate.id, prompt: gate.why ?? "", options,
    ...(resolution && { approved: resolution.allowed, reason: resolution.reason ?? "" }),
    ...(isPast && { resolution: "cancelled" as const }),
  };
}

function parseArguments(text: string): Record<string, never> {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, never>) : {};
  } catch {
    return {}; // a model may write anything; `argsText` has the exact text
  }
}
