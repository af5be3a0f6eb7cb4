/** Conversation header: title, agent, model and cost, who may see the conversation, and the buttons that search, share and export it. */
import { useEffect, useState } from "preact/hooks";
import type { SessionFollower, SharingView } from "@everturn/client";
import { attempt, client, conversationCosts, hasRole, readOnlySessions } from "../app/app";
import { lazy } from "../app/lazy";
import { hrefFor } from "../app/route";
import { useStore } from "../app/store";
import { format } from "../app/texts";
import { ConversationViewers } from "../app/viewers";
import { sessionTitle } from "../app/titles";
import { useCurrentChoice } from "../pages/pickers";
import { exportSession } from "../pages/sessions";
import { topSession } from "../pages/sessionList";
import { Badge, Button, Icon, Menu } from "../ui/components";
import "./header.css";
import { useTexts } from "../locales/conversationHeader.gen";

const FindBar = lazy(async () => (await import("./findBar")).FindBar, true);
const ShareDialog = lazy(async () => (await import("./shareDialog")).ShareDialog, true);

export function ConversationHeader({ session }: { session: SessionFollower }) {
  const t = useTexts();
  const { agent, model } = useCurrentChoice(session.id);
  const [isOpen, setOpen] = useState(false);
  const [isFinding, setFinding] = useState(false);
  const cost = useStore(conversationCosts).get(session.id);
  const { sharing, set } = useSharing(session.id);
  const title = sessionTitle(session.id, session.state.title) || t.untitled;
  const isRoot = topSession(session.id) === session.id;
  const exportText = async (kind: "markdown" | "json") => {
    const { saveConversation } = await import("./exportText");
    await attempt(saveConversation(session.id, title, kind));
  };
  const items = [
    { label: t.markdown, icon: "download" as const, onSelect: () => void exportText("markdown") },
    { label: t.json, icon: "download" as const, onSelect: () => void exportText("json") },
  ];
  if (isRoot && hasRole("member")) items.push({ label: t.archive, icon: "download", onSelect: () => void exportSession(session.id, title) });
  return (
    <>
      <header class="conversation-head">
        <div class="grow about">
          <h1 class="title ellipsis" dir="auto" title={title}>{title}</h1>
          <p class="small muted ellipsis by">{[agent?.name, model].filter(Boolean).join(" · ")}</p>
          {cost ? <p class="small muted cost" title={t.cost}>{format.cost(cost)}</p> : null}
        </div>
        <ConversationViewers session={session.id} />
        {sharing && <AccessBadge sharing={sharing} />}
        {isRoot && hasRole("member") && sharing && sharing.level !== "read" && <Button little icon="share" class="share" aria-label={t.share} onClick={() => setOpen(true)}><span class="label">{t.share}</span></Button>}
        <Button little kind="quiet" icon="search" aria-label={t.find} aria-expanded={isFinding} onClick={() => setFinding(!isFinding)} />
        {hasBranches(session) && <a class="button quiet little icon" href={hrefFor({ page: "tree", session: session.id })} aria-label={t.branches} title={t.branches}><Icon name="branch" /></a>}
        <Menu end button={{ icon: "download", label: t.exported }} items={items} />
        {isOpen && sharing && <ShareDialog session={session.id} sharing={sharing} onChange={set} onClose={() => setOpen(false)} />}
      </header>
      {isFinding && <FindBar session={session} onClose={() => setFinding(false)} />}
    </>
  );
}

/** Whether a message has several answers or versions. */
function hasBranches({ state }: SessionFollower): boolean {
  for (const below of state.children.values()) if (below.length > 1 && below.filter((id) => !state.deleted.has(id) && !state.messages.get(id)?.hidden).length > 1) return true;
  return false;
}

/** What others have to do with the conversation, in a word. */
function AccessBadge({ sharing }: { sharing: SharingView }) {
  const t = useTexts();
  const { author, level, shares, temporary_until: until } = sharing;
  if (until) return <Badge tone="warn" icon="clock" title={t.temporary_title(format.moment(until))}><span class="label">{t.temporary}</span></Badge>;
  if (level !== "manage") return <Badge tone="accent" icon={level === "read" ? "eye" : "edit"} title={t.by(author)}><span class="label">{level === "read" ? t.read_only : t.by(author)}</span></Badge>;
  const others = shares.filter((share) => share.kind === "user" || share.kind === "role").length; // of administrators a banner tells
  if (!others && shares.some((share) => share.kind === "link")) return <Badge tone="accent" icon="link"><span class="label">{t.by_link}</span></Badge>;
  return others ? <Badge tone="accent" icon="people"><span class="label">{t.shared(others)}</span></Badge> : null;
}

/** Who may see a session. Until it is known, what the role allows is offered. */
export function useSharing(session: string): { sharing: SharingView | null; set: (sharing: SharingView) => void } {
  const [sharing, setSharing] = useState<SharingView | null>(null);
  const set = (found: SharingView) => {
    setSharing(found);
    const others = [...readOnlySessions.value].filter((id) => id !== session);
    if (others.length !== readOnlySessions.value.size || found.level === "read") readOnlySessions.set(new Set(found.level === "read" ? [...others, session] : others));
  };
  useEffect(() => {
    let isCurrent = true;
    // A failure is not shown here: the conversation itself says whether it is there.
    client.sharing(session).then((found) => isCurrent && set(found), () => undefined);
    return () => void (isCurrent = false);
  }, [session]);
  return { sharing, set };
}
