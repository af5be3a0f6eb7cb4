/** Message actions: versions, rerun, edit, fork, compare, copy, delete. */
import { useState } from "preact/hooks";
import { isOver, textOf, type Message, type SessionFollower } from "@everturn/client";
import { attempt, client, hasRole, mayWrite, readOnlySessions, toast } from "../app/app";
import { lazy } from "../app/lazy";
import { navigate, hrefFor } from "../app/route";
import { useStore, useTopics } from "../app/store";
import { format } from "../app/texts";
import { modelsOf } from "../pages/agentChoice";
import { ModelButton, useSessionAgent } from "../pages/pickers";
import { RatingButtons } from "./ratingButtons";
import { Button, CopyButton, Menu, copyText, type MenuItem } from "../ui/components";
import { visibleVersions, leafThrough, newestLeaf } from "./branches";
import "./messageActions.css";
import { useTexts } from "../locales/messageActions.gen";

const ReadAloud = lazy(async () => (await import("../audio/readAloud")).ReadAloud, true);
const RawMessage = lazy(async () => (await import("./rawMessage")).RawMessage);
const DeleteDialog = lazy(async () => (await import("./deleteDialog")).DeleteDialog);

interface Props {
  session: SessionFollower;
  message: Message;
  onEdit?: () => void;
}

export function MessageActions({ session, message, onEdit }: Props) {
  const t = useTexts();
  useTopics(session, "tree");
  useStore(readOnlySessions);
  const text = textOf(message.parts);
  const turn = message.turn ? session.state.turns.get(message.turn) : undefined;
  const isWritten = message.role === "assistant" && turn !== undefined && !isOver(turn) && turn.answer === message.id;
  return (
    <div class="message-actions" data-role={message.role} role="group" aria-label={t.actions}>
      <VersionPicker session={session} message={message} />
      {text && <CopyButton text={text} label={t.copy} done={t.copied} />}
      {text && message.role === "assistant" && !isWritten && <ReadAloud session={session.id} message={message} />}
      {message.role === "assistant" && !isWritten && mayWrite(session.id) && <RerunButtons session={session} message={message} />}
      {message.role === "assistant" && !isWritten && mayWrite(session.id) && <RatingButtons session={session} message={message.id} />}
      {message.role === "user" && onEdit && mayWrite(session.id) && <Button kind="quiet" little icon="edit" aria-label={t.edit} onClick={onEdit} />}
      <MoreMenu session={session} message={message} />
      <WrittenAt at={message.role === "assistant" ? turn?.ended : turn?.started} />
    </div>
  );
}

/** When a message was sent, or an answer was finished: the time, with the day unless it is today. */
function WrittenAt({ at }: { at: number | null | undefined }) {
  if (!at) return null;
  const date = new Date(at * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return <time class="at" dateTime={date.toISOString()} title={format.moment(at)}>{isToday ? format.time(at) : format.moment(at)}</time>;
}

/** ‹ 2/3 ›: the versions of a message, if there are several. */
function VersionPicker({ session, message }: Props) {
  const t = useTexts();
  const all = visibleVersions(session.state, message);
  const index = all.indexOf(message.id);
  if (all.length < 2 || index < 0) return null;
  const to = (number: number) => {
    const version = all[number];
    if (version) void attempt(client.select(session.id, { message: newestLeaf(session.state, version) }));
  };
  return (
    <span class="versions" role="group" aria-label={t.version(index + 1, all.length)}>
      <Button kind="quiet" little icon="chevron" class="back" aria-label={t.earlier} disabled={index === 0 || !mayWrite(session.id)} onClick={() => to(index - 1)} />
      <span class="at" aria-hidden="true">{index + 1}/{all.length}</span>
      <Button kind="quiet" little icon="chevron" aria-label={t.later} disabled={index === all.length - 1 || !mayWrite(session.id)} onClick={() => to(index + 1)} />
    </span>
  );
}

/** Rerun: with the same model by one click, with another one from the menu. */
function RerunButtons({ session, message }: Props) {
  const t = useTexts();
  const agent = useSessionAgent(session.id);
  const rerun = (model?: string) => void attempt(client.rerun(session.id, message.id, { ...(model ? { model } : {}), at_step_limit: "ask" }));
  return (
    <>
      <Button kind="quiet" little icon="redo" aria-label={t.rerun} onClick={() => rerun()} />
      {agent && modelsOf(agent).length > 1 && <ModelButton label={t.with} agent={agent} current={message.by ?? ""} onSelect={rerun} />}
    </>
  );
}

function MoreMenu({ session, message }: Props) {
  const t = useTexts();
  const [shown, setShown] = useState<"raw" | "delete" | null>(null);
  const all = visibleVersions(session.state, message);
  const index = all.indexOf(message.id);
  const items: MenuItem[] = [{ label: t.link, icon: "link", onSelect: () => void copyLink(session.id, message.id).then(() => toast(t.linked)) }];
  if (hasRole("member")) items.push({ label: t.fork, icon: "branch", onSelect: () => void fork(session, message, t.forked) });
  // With the neighbouring versions, before and after.
  for (const [number, other] of all.entries()) {
    if (number === index || Math.abs(number - index) > MAX_OFFERED) continue;
    const [left, right] = [leafThrough(session.state, message.id), newestLeaf(session.state, other)];
    items.push({ label: t.compare(number + 1, all.length), icon: "compare", onSelect: () => navigate({ page: "compare", session: session.id, left, right }) });
  }
  if (message.turn) items.push({ label: t.trace, icon: "chart", onSelect: () => navigate({ page: "trace", session: session.id, turn: message.turn! }) });
  items.push({ label: t.raw, icon: "eye", onSelect: () => setShown("raw") });
  if (mayWrite(session.id)) items.push({ label: t.remove, icon: "trash", onSelect: () => setShown("delete") });
  return (
    <>
      <Menu button={{ icon: "more", label: t.more }} items={items} />
      {shown === "raw" && <RawMessage message={message} onClose={() => setShown(null)} />}
      {shown === "delete" && <DeleteDialog session={session} message={message} onClose={() => setShown(null)} />}
    </>
  );
}

const MAX_OFFERED = 4; // versions that are offered on each side

async function copyLink(session: string, message: string): Promise<void> {
  await copyText(new URL(hrefFor({ page: "session", session, message }), location.href).href);
}

/** Select a message, so that the next one continues from there. */
async function fork(session: SessionFollower, message: Message, confirmation: string): Promise<void> {
  const isDone = await attempt(client.select(session.id, { message: message.id }).then(() => true));
  if (!isDone) return;
  toast(confirmation);
  document.querySelector<HTMLElement>("#main .composer textarea, #main textarea")?.focus();
}
