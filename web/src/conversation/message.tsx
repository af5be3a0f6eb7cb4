/** Message view: a user message, an answer, or a notice. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { isOver, type LivePart, type Message, type Part, type SessionFollower, type TurnState } from "@everturn/client";
import { ErrorBoundary } from "../app/errorBoundary";
import { useTopics } from "../app/store";
import { defineTexts } from "../app/texts";
import { ToolCard } from "../tools/card";
import { MessageActions } from "../tree/messageActions";
import { FileChanges } from "../tree/fileChanges";
import { Badge, Button } from "../ui/components";
import { Composer } from "./composer";
import { useMemoizedNodes } from "./useMemoizedNodes";
import { Markdown } from "./markdown";
import { Media } from "./media";
import { Notice, NoticeMessage } from "./notice";
import { showControls } from "./textEscapes";
import { Reasoning } from "./reasoning";
import { StepLine } from "./step";

const useTexts = defineTexts(
  { you: "You", by: (author: string) => `Message of ${author}`, answer: "Answer", notice: "Notice", all: "Show all of it", less: "Show less", empty: "No answer was written." },
  { you: "您", by: (author: string) => `${author} 的消息`, answer: "回答", notice: "通知", all: "全部显示", less: "收起", empty: "没有写出回答。" },
);

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
          : message.role === "notice" ? <NoticeMessage message={message} />
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
        {parts.map((part, index) => part.type === "notice" && <Notice key={index} part={part} by="" />)}
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
  const rendered: (VNode | null)[] = parts.map((part, index) => memoize(index, [part], () => <div class={`part ${part.type}`} key={index}>{renderPart(session, turn, message, part, index)}</div>));
  // A streaming part has the key that it will have when its step has ended, so its nodes are kept.
  live.forEach((part, index) => rendered.push(renderLivePart(session, id, part, parts.length + index)));
  return (
    <>
      {message.by && <div class="by"><Badge>{showControls(message.by)}</Badge></div>}
      <div class="parts" aria-busy={isWriting}>{rendered}</div>
      {turn && isOver(turn) && isEmptyAnswer(parts) && <p class="small muted">{t.empty}</p>}
      {!isWriting && <MessageActions session={session} message={message} />}
    </>
  );
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
      return part.text.trim() ? <Markdown text={part.text} isLive={false} /> : null;
    case "reasoning":
      return <Reasoning text={part.text} isLive={false} />;
    case "tool":
      // A call that a tool requested is drawn in the card of that tool.
      return part.parent ? null : <ToolCard session={session} turn={message.turn ?? ""} part={part} />;
    case "file":
      return <Media session={session.id} part={part} />;
    case "step":
      return <StepLine part={part} turn={turn} model={message.by ?? turn?.options.model ?? ""} isBare={(message.parts![index - 1]?.type ?? "step") === "step"} />;
    case "files":
      return <FileChanges session={session} part={part} />;
    case "notice":
      return <Notice part={part} by={message.by ?? ""} />;
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
