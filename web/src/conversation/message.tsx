/** A message: the person's, an answer, or a notice. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { isOver, type LivePart, type Message, type Part, type SessionFollower, type TurnState } from "@everturn/client";
import { Boundary } from "../app/boundary";
import { useTopics } from "../app/store";
import { words } from "../app/words";
import { ToolCard } from "../tools/card";
import { MessageActions } from "../tree/branches";
import { FilesChanged } from "../tree/files";
import { Badge, Button } from "../ui/kit";
import { Composer } from "./composer";
import { useKept } from "./kept";
import { Markdown } from "./markdown";
import { Media } from "./media";
import { Notice, NoticeMessage } from "./notice";
import { visible } from "./plain";
import { Reasoning } from "./reasoning";
import { StepLine } from "./step";

const useWords = words(
  { you: "You", by: (who: string) => `Message of ${who}`, answer: "Answer", notice: "Notice", all: "Show all of it", less: "Show less", empty: "No answer was written." },
  { you: "您", by: (who: string) => `${who} 的消息`, answer: "回答", notice: "通知", all: "全部显示", less: "收起", empty: "没有写出回答。" },
);

interface Props {
  session: SessionFollower;
  id: string;
  isEdited: boolean;
  isMarked: boolean;
  onEdit: (message: string | null) => void;
}

export function MessageView({ session, id, isEdited, isMarked, onEdit }: Props) {
  const t = useWords();
  useTopics(session, `message:${id}`);
  const message = session.state.messages.get(id);
  if (!message) return null;
  const label = message.role === "user" ? (message.by ? t.by(message.by) : t.you) : message.role === "assistant" ? t.answer : t.notice;
  return (
    <article id={`m-${id}`} class={`message ${message.role} ${isMarked ? "marked" : ""}`} data-message={id} data-role={message.role}
      aria-label={label} tabIndex={-1}>
      <Boundary name="message" of={message}>
        {message.role === "assistant" ? <Answer session={session} message={message} />
          : message.role === "notice" ? <NoticeMessage message={message} />
          : isEdited ? <Composer session={session} edited={message} onDone={() => onEdit(null)} />
          : <Said session={session} message={message} onEdit={() => onEdit(id)} />}
      </Boundary>
    </article>
  );
}

const LONG = 3000; // characters of a person's message that are shown at once

function Said({ session, message, onEdit }: { session: SessionFollower; message: Message; onEdit: () => void }) {
  const t = useWords();
  const [isWhole, setWhole] = useState(false);
  const parts = message.parts ?? [];
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const files = parts.filter((part) => part.type === "file");
  const isLong = text.length > LONG;
  return (
    <>
      <div class="said">
        {files.length > 0 && <div class="files">{files.map((part) => <Media key={part.blob} session={session.id} part={part} />)}</div>}
        {text && <p class="plain" dir="auto">{visible(isLong && !isWhole ? `${text.slice(0, LONG)}…` : text)}</p>}
        {isLong && <Button kind="quiet" little aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? t.less : t.all}</Button>}
        {parts.map((part, at) => part.type === "notice" && <Notice key={at} part={part} by="" />)}
      </div>
      <MessageActions session={session} message={message} onEdit={onEdit} />
    </>
  );
}

function Answer({ session, message }: { session: SessionFollower; message: Message }) {
  const t = useWords();
  const id = message.turn ?? "";
  useTopics(session, `live:${id}`);
  const keep = useKept();
  const { state } = session;
  const turn = state.turns.get(id);
  const parts = message.parts ?? [];
  const isWriting = turn !== undefined && !turn.ended && state.writing.get(id) === message.id;
  const live = isWriting ? turn.live : [];
  const drawn: (VNode | null)[] = parts.map((part, at) => keep(at, [part], () => <div class={`part ${part.type}`} key={at}>{finished(session, turn, message, part, at)}</div>));
  // A part that streams has the place that it will have when its step is over, so what is drawn goes on as it is.
  live.forEach((part, at) => drawn.push(streaming(session, id, part, parts.length + at)));
  return (
    <>
      {message.by && <div class="by"><Badge>{visible(message.by)}</Badge></div>}
      <div class="parts" aria-busy={isWriting}>{drawn}</div>
      {turn && isOver(turn) && isEmpty(parts) && <p class="small muted">{t.empty}</p>}
      {!isWriting && <MessageActions session={session} message={message} />}
    </>
  );
}

/** Whether a model has ended an answer and said nothing in its last step: no text, no call, no file. */
export function isEmpty(parts: readonly Part[]): boolean {
  const end = parts.findLastIndex((part) => part.type === "step");
  const from = parts.slice(0, Math.max(end, 0)).findLastIndex((part) => part.type === "step") + 1;
  const last = parts[end];
  return last?.type === "step" && last.finish === "stop" && !parts.slice(from).some((part) => (part.type === "text" ? part.text.trim() : part.type === "tool" || part.type === "file"));
}

function finished(session: SessionFollower, turn: TurnState | undefined, message: Message, part: Part, at: number) {
  switch (part.type) {
    case "text":
      return part.text.trim() ? <Markdown text={part.text} isLive={false} /> : null;
    case "reasoning":
      return <Reasoning text={part.text} isLive={false} />;
    case "tool":
      // One that a tool made for itself is drawn in the card of that tool.
      return part.parent ? null : <ToolCard session={session} turn={message.turn ?? ""} part={part} />;
    case "file":
      return <Media session={session.id} part={part} />;
    case "step":
      return <StepLine part={part} turn={turn} model={message.by ?? turn?.options.model ?? ""} isBare={(message.parts![at - 1]?.type ?? "step") === "step"} />;
    case "files":
      return <FilesChanged session={session} part={part} />;
    case "notice":
      return <Notice part={part} by={message.by ?? ""} />;
  }
}

function streaming(session: SessionFollower, turn: string, live: LivePart, at: number): VNode {
  const type = live.kind === "call" ? "tool" : live.kind;
  return (
    <div class={`part ${type}`} key={at}>
      {live.kind === "text" ? <Markdown text={live.text} isLive />
        : live.kind === "reasoning" ? <Reasoning text={live.text} isLive />
        : <ToolCard session={session} turn={turn} live={{ ...live }} />}
    </div>
  );
}
