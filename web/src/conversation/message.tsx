/** Message view: a user message, an answer, or a notice. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { isOver, type LivePart, type Message, type Part, type SessionFollower, type TextPart, type TurnState } from "@everturn/client";
import { mayWrite } from "../app/app";
import { ErrorBoundary } from "../app/errorBoundary";
import { useTopics } from "../app/store";
import { ToolCard } from "../tools/card";
import { MessageActions } from "../tree/messageActions";
import { FileChanges } from "../tree/fileChanges";
import { Badge, Button } from "../ui/components";
import { Composer } from "./composer";
import { useMemoizedNodes } from "./useMemoizedNodes";
import { Markdown } from "./markdown";
import { Media } from "./media";
import { AttachedContext, CompactionCard, Notice, NoticeMessage } from "./notice";
import { CitedText, ProviderTool } from "./providerTool";
import { showControls } from "./textEscapes";
import { Reasoning } from "./reasoning";
import { AnswerUsage, CopiedSteps, StepWarnings } from "./step";
import { useTexts } from "../locales/message.gen";

interface Props {
  session: SessionFollower;
  id: string;
  isEdited: boolean;
  isMarked: boolean;
  onEdit: (message: string | null) => void;
}

export function MessageView({ session, id, isEdited, isMarked, onEdit }: Props) {
  const t = useTexts();
  useTopics(session, `message:${id}`);
  const message = session.state.messages.get(id);
  if (!message) return null;
  const label = message.role === "user" ? (message.by ? t.by(message.by) : t.you) : message.role === "assistant" ? t.answer : t.notice;
  return (
    <article id={`m-${id}`} class={`message ${message.role} ${isMarked ? "marked" : ""}`} data-message={id} data-role={message.role}
      aria-label={label} tabIndex={-1}>
      <ErrorBoundary name="message" resetKey={message}>
        {message.role === "assistant" ? <AssistantMessage session={session} message={message} />
          : message.role === "notice" ? <NoticeMessage session={session} message={message} />
          : isEdited ? <Composer session={session} edited={message} onDone={() => onEdit(null)} />
          : <UserMessage session={session} message={message} onEdit={() => onEdit(id)} />}
      </ErrorBoundary>
    </article>
  );
}

const MAX_SHOWN = 3000; // characters of a user message that are shown at first

function UserMessage({ session, message, onEdit }: { session: SessionFollower; message: Message; onEdit: () => void }) {
  const t = useTexts();
  const [isWhole, setWhole] = useState(false);
  const parts = message.parts ?? [];
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const files = parts.filter((part) => part.type === "file");
  const isLong = text.length > MAX_SHOWN;
  return (
    <>
      <div class="user-text">
        {files.length > 0 && <div class="files">{files.map((part) => <Media key={part.blob} session={session.id} part={part} />)}</div>}
        {text && <p class="plain" dir="auto">{showControls(isLong && !isWhole ? `${text.slice(0, MAX_SHOWN)}…` : text)}</p>}
        {isLong && <Button kind="quiet" little aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? t.less : t.all}</Button>}
        {parts.map((part, index) => part.type === "notice" ? <Notice key={index} part={part} by="" /> : part.type === "context" && <AttachedContext key={index} part={part} />)}
      </div>
      <MessageActions session={session} message={message} onEdit={onEdit} />
    </>
  );
}

function AssistantMessage({ session, message }: { session: SessionFollower; message: Message }) {
  const t = useTexts();
  const id = message.turn ?? "";
  useTopics(session, `live:${id}`);
  const memoize = useMemoizedNodes();
  const { state } = session;
  const turn = state.turns.get(id);
  const parts = message.parts ?? [];
  const isWriting = turn !== undefined && !turn.ended && state.writing.get(id) === message.id;
  const live = isWriting ? turn.live : [];
  const { shown, into } = joinContinued(parts);
  const next = into < 0 ? -1 : live.findIndex((part) => part.kind === "text");
  const rendered: (VNode | null)[] = shown.map((part, index) =>
    part && (index === into && next >= 0 && part.type === "text"
      ? renderLivePart(session, id, { ...live[next]!, text: part.text + live[next]!.text }, index)
      : memoize(index, [part], () => <div class={`part ${part.type}`} key={index}>{renderPart(session, turn, message, part, index)}</div>)));
  // A streaming part has the key that it will have when its step has ended, so its nodes are kept.
  live.forEach((part, index) => index !== next && rendered.push(renderLivePart(session, id, part, parts.length + index)));
  return (
    <>
      {message.by && <div class="by"><Badge>{showControls(authors(message))}</Badge></div>}
      <div class="parts" aria-busy={isWriting}>{rendered}</div>
      {turn && isOver(turn) && isEmptyAnswer(parts) && <p class="small muted">{t.empty}</p>}
      {message.fork && <CopiedSteps parts={parts} />}
      {!isWriting && (
        <AnswerUsage parts={parts} turn={turn} by={message.by ?? turn?.options.model ?? ""} fork={mayWrite(session.id) ? { session, message } : undefined} />
      )}
      {!isWriting && <MessageActions session={session} message={message} />}
    </>
  );
}

/** The model that wrote an answer; all of them, if a fallback wrote some of its steps. */
function authors(message: Message): string {
  const steps = (message.parts ?? []).flatMap((part) => (part.type === "step" ? [part.model || (message.by ?? "")] : []));
  return [...new Set(steps.length ? steps : [message.by ?? ""])].join(", ");
}

/**
 * The parts as they are shown: a text that was cut at the output limit and its continuation in the next step as one, and so texts side by side,
 * and a call of a provider's tool and its result. `into` is the text that the next step continues.
 */
export function joinContinued(parts: readonly Part[]): { shown: (Part | null)[]; into: number } {
  const shown: (Part | null)[] = [...parts];
  let into = -1, last = -1;
  parts.forEach((part, index) => {
    const first = shown[into];
    const before = last >= 0 && shown.slice(last + 1, index).every((between) => between === null) ? shown[last] : null;
    if (part.type === "text" && first?.type === "text") {
      shown[into] = joinTexts(first, part);
      shown[index] = null;
    } else if (part.type === "text" && before?.type === "text") {
      shown[last] = joinTexts(before, part);
      shown[index] = null;
    } else if (part.type === "provider_tool" && part.state !== "called") {
      const at = shown.slice(0, index).findIndex((call) => call?.type === "provider_tool" && call.state === "called" && call.id && call.id === part.id);
      const call = shown[at];
      if (call?.type === "provider_tool") {
        shown[at] = { ...part, title: call.title };
        shown[index] = null;
      }
    } else if (part.type === "text") last = index;
    else if (part.type === "tool") last = into = -1;
    else if (part.type === "step") {
      if (part.continues) shown[index] = null;
      last = into = part.continues ? Math.max(into, last) : -1;
    }
  });
  return { shown, into };
}

function joinTexts(first: TextPart, second: TextPart): TextPart {
  const size = [...first.text].length;
  const moved = (second.citations ?? []).map((each) => ({ ...each, start: each.start + size, end: each.end + size }));
  const citations = [...(first.citations ?? []), ...moved];
  return { type: "text", text: first.text + second.text, ...(citations.length > 0 && { citations }) };
}

/** Whether an answer ended without text, call or file in its last step. */
export function isEmptyAnswer(parts: readonly Part[]): boolean {
  const end = parts.findLastIndex((part) => part.type === "step");
  const from = parts.slice(0, Math.max(end, 0)).findLastIndex((part) => part.type === "step") + 1;
  const last = parts[end];
  return last?.type === "step" && last.finish === "stop" && !parts.slice(from).some((part) => (part.type === "text" ? part.text.trim() : part.type === "tool" || part.type === "file"));
}

function renderPart(session: SessionFollower, turn: TurnState | undefined, message: Message, part: Part, index: number) {
  switch (part.type) {
    case "text":
      return part.text.trim() ? part.citations?.length ? <CitedText part={part} /> : <Markdown text={part.text} isLive={false} /> : null;
    case "reasoning":
      return <Reasoning text={part.text} isLive={false} />;
    case "tool":
      // A call that a tool requested is drawn in the card of that tool.
      return part.parent ? null : <ToolCard session={session} turn={message.turn ?? ""} part={part} />;
    case "file":
      return <Media session={session.id} part={part} />;
    case "step":
      return <StepWarnings part={part} turn={turn} isBare={(message.parts![index - 1]?.type ?? "step") === "step"} />;
    case "files":
      return <FileChanges session={session} part={part} />;
    case "notice":
      return <Notice part={part} by={message.by ?? ""} />;
    case "context":
      return <AttachedContext part={part} />;
    case "provider_tool":
      return <ProviderTool part={part} />;
    case "summary":
    case "cleared":
      return <CompactionCard part={part} />;
  }
}

function renderLivePart(session: SessionFollower, turn: string, live: LivePart, index: number): VNode {
  const type = live.kind === "call" ? "tool" : live.kind;
  return (
    <div class={`part ${type}`} key={index}>
      {live.kind === "text" ? <Markdown text={live.text} isLive />
        : live.kind === "reasoning" ? <Reasoning text={live.text} isLive />
        : <ToolCard session={session} turn={turn} live={{ ...live }} />}
    </div>
  );
}
