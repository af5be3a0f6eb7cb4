/** Two messages side by side, or one alone. */
import { useMemo } from "preact/hooks";
import { textOf, type Message, type ToolPart } from "@everturn/client";
import { ErrorBoundary } from "../app/errorBoundary";
import { format } from "../app/texts";
import { Markdown } from "../conversation/markdown";
import { Badge, Icon } from "../ui/components";
import { diff, type Change } from "./diff";
import { usageOf } from "./totals";
import { useTexts } from "../locales/messagePair.gen";

export function MessagePair({ left, right, isDiff }: { left: Message | null; right: Message | null; isDiff: boolean }) {
  const t = useTexts();
  const changes = useMemo(() => (isDiff && left && right ? diff(allText(left), allText(right)) : null), [isDiff, left, right]);
  return (
    <div class="sides">
      <div class="side left">{left ? <MessageSummary message={left} changes={changes?.filter((change) => change.kind !== "added")} /> : <p class="small muted none">{t.nothing}</p>}</div>
      <div class="side right">{right ? <MessageSummary message={right} changes={changes?.filter((change) => change.kind !== "removed")} /> : <p class="small muted none">{t.nothing}</p>}</div>
    </div>
  );
}

/** A message with all its text; each tool call is one line. */
export function MessageSummary({ message, changes }: { message: Message; changes?: readonly Change[] }) {
  const t = useTexts();
  const text = allText(message);
  const tools = (message.parts ?? []).filter((part): part is ToolPart => part.type === "tool" && !part.parent);
  const files = (message.parts ?? []).reduce((count, part) => count + (part.type === "files" ? (part.changes?.length ?? 0) : 0), 0);
  const used = usageOf([message]);
  const tokens = (used.input ?? 0) + (used.output ?? 0);
  return (
    <article class="message-summary" data-role={message.role}>
      <header class="row wrap small muted">
        <strong>{t[message.role]}</strong>
        {message.by && message.role !== "user" && <span class="ellipsis">{message.by}</span>}
        {tokens > 0 && <span>{t.tokens(format.number(tokens))}{used.cost ? ` · ${format.cost(used.cost)}` : ""}</span>}
      </header>
      {tools.length > 0 && <ul class="tool-lines">{tools.map((part) => <ToolLine key={part.call} part={part} />)}</ul>}
      <ErrorBoundary name="compared message" resetKey={message}>
        {changes ? <MarkedChanges changes={changes} /> : text ? message.role === "assistant" ? <Markdown text={text} /> : <p class="plain" dir="auto">{text}</p> : !tools.length && <p class="small muted">{t.empty}</p>}
      </ErrorBoundary>
      {files > 0 && <p class="small muted row"><Icon name="file" />{t.files(files)}</p>}
    </article>
  );
}

const SUMMARY = 140; // characters of a result

function ToolLine({ part }: { part: ToolPart }) {
  const t = useTexts();
  const state = part.state ?? "pending";
  const tone = state === "completed" ? "good" : ["failed", "denied", "withheld", "outcome_unknown"].includes(state) ? "bad" : undefined;
  const [first = ""] = (part.output?.title || part.output?.text || "").trim().split("\n", 1);
  return (
    <li class="small">
      <span class="row wrap"><Icon name="tool" /><code>{part.name}</code><Badge tone={tone}>{t[state]}</Badge></span>
      <code class="muted arguments" dir="ltr">{truncate(part.used || part.arguments)}</code>
      {first && <span class="muted" dir="auto">{truncate(first)}</span>}
    </li>
  );
}

/** One side of a diff: what is not on the other side is marked, and not by colour alone. */
function MarkedChanges({ changes }: { changes: readonly Change[] }) {
  return (
    <p class="plain marked" dir="auto">
      {changes.map((change, index) => (change.kind === "same" ? change.text : change.kind === "added" ? <ins key={index}>{change.text}</ins> : <del key={index}>{change.text}</del>))}
    </p>
  );
}

const truncate = (text: string) => (text.length > SUMMARY ? `${text.slice(0, SUMMARY)}…` : text);

/** The text of a message, and of its notices. */
function allText(message: Message): string {
  const notices = (message.parts ?? []).flatMap((part) => (part.type === "notice" ? [part.text] : []));
  return [textOf(message.parts), ...notices].filter(Boolean).join("\n\n");
}
