/** Notice: text that a plugin or the runtime gave to the model. Drawn apart from user messages. */
import type { ContextPart, Message, NoticePart, SessionFollower } from "@everturn/client";
import { lazy } from "../app/lazy";
import { Disclosure, Icon } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/notice.gen";

const KINDS = ["late", "max_steps", "limit", "loop", "compaction"] as const;

export function Notice({ part, by }: { part: NoticePart; by: string }) {
  const t = useTexts();
  const kind = KINDS.find((prefix) => part.kind === prefix || part.kind.startsWith(`${prefix}:`) || part.kind.startsWith(`${prefix}_`));
  const author = !by || by === "everturn" ? t.runtime : showControls(by);
  const title = kind ? t[kind] : t.told(author);
  return (
    <Disclosure class="notice" summary={<><Icon name="file" /><span>{title}</span>{kind && author !== t.runtime && <span class="muted">{author}</span>}</>}>
      <pre dir="auto">{showControls(part.text)}</pre>
    </Disclosure>
  );
}

/** A compaction; its card is loaded with the first one. */
export const CompactionCard = lazy(async () => (await import("./compactionCard")).CompactionCard);

const CONTEXTS = ["selection", "page", "note"] as const;

/** Context that a client attached to a message: what it is and where it is from, and its text. */
export function AttachedContext({ part }: { part: ContextPart }) {
  const t = useTexts();
  const kind = CONTEXTS.find((known) => known === part.kind);
  return (
    <Disclosure class="notice attached" summary={<><Icon name="link" /><span>{kind ? t[kind] : showControls(part.kind)}</span><span class="muted ellipsis">{showControls(part.title || part.source || "")}</span></>}>
      {part.source && <p class="small muted">{showControls(part.source)}</p>}
      <pre dir="auto">{showControls(part.text)}</pre>
    </Disclosure>
  );
}

/** An imported compaction is only shown: nothing was compacted here, so there is nothing to undo. */
export function NoticeMessage({ session, message }: { session: SessionFollower; message: Message }) {
  const undo = message.imported ? {} : { session, message };
  return (
    <>
      {(message.parts ?? []).map((part, index) =>
        part.type === "summary" || part.type === "cleared" ? <CompactionCard key={index} part={part} {...undo} />
        : part.type === "notice" ? <Notice key={index} part={part} by={message.by ?? ""} />
        : part.type === "text" ? <Notice key={index} part={{ type: "notice", kind: "", text: part.text }} by={message.by ?? ""} /> : null)}
    </>
  );
}
