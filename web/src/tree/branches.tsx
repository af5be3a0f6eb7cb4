/** What can be done at a message: other versions, another answer, edit, fork, compare, copy, delete. */
import { useState } from "preact/hooks";
import { isOver, textOf, type Message, type SessionFollower } from "@everturn/client";
import { attempt, client, may, toast } from "../app/app";
import { lazy } from "../app/lazy";
import { go, link } from "../app/route";
import { useTopics } from "../app/store";
import { words } from "../app/words";
import { modelsOf } from "../around/choice";
import { useOwnAgent } from "../around/pickers";
import { Button, CopyButton, Menu, copyText, type MenuItem } from "../ui/kit";
import { choices, leafThrough, newestLeaf } from "./branching";
import "./branches.css";

const Raw = lazy(async () => (await import("./raw")).Raw);
const Delete = lazy(async () => (await import("./delete")).Delete);

const useWords = words(
  {
    actions: "What can be done with this message", earlier: "Earlier version", later: "Later version", version: (at: number, count: number) => `Version ${at} of ${count}`,
    rerun: "Another answer", with: "Another answer with…", edit: "Edit", copy: "Copy text", copied: "Copied", link: "Copy link",
    linked: "The link is copied.", fork: "Go on from here", forked: "The next message goes on from here.", compare: (at: number, count: number) => `Compare with version ${at}/${count}`,
    raw: "Show raw message", remove: "Delete…", more: "More", again: "The same model",
  },
  {
    actions: "对此消息的操作", earlier: "上一个版本", later: "下一个版本", version: (at: number, count: number) => `第 ${at} 个版本，共 ${count} 个`,
    rerun: "重新回答", with: "换模型重新回答…", edit: "编辑", copy: "复制文本", copied: "已复制", link: "复制链接",
    linked: "链接已复制。", fork: "从这里继续", forked: "下一条消息将从这里继续。", compare: (at: number, count: number) => `与版本 ${at}/${count} 比较`,
    raw: "查看原始消息", remove: "删除…", more: "更多", again: "相同模型",
  },
);

interface Props {
  session: SessionFollower;
  message: Message;
  onEdit?: () => void;
}

export function MessageActions({ session, message, onEdit }: Props) {
  const t = useWords();
  useTopics(session, "tree");
  const text = textOf(message.parts);
  const turn = message.turn ? session.state.turns.get(message.turn) : undefined;
  const isWritten = message.role === "assistant" && turn !== undefined && !isOver(turn) && turn.answer === message.id;
  return (
    <div class="message-actions" data-role={message.role} role="group" aria-label={t.actions}>
      <Versions session={session} message={message} />
      {text && <CopyButton text={text} label={t.copy} done={t.copied} />}
      {message.role === "assistant" && !isWritten && may("member") && <Again session={session} message={message} />}
      {message.role === "user" && onEdit && may("member") && <Button kind="quiet" little icon="edit" aria-label={t.edit} onClick={onEdit} />}
      <More session={session} message={message} />
    </div>
  );
}

/** ‹ 2/3 ›: the versions of a message, where there are several. */
function Versions({ session, message }: Props) {
  const t = useWords();
  const all = choices(session.state, message);
  const at = all.indexOf(message.id);
  if (all.length < 2 || at < 0) return null;
  const to = (number: number) => {
    const version = all[number];
    if (version) void attempt(client.select(session.id, { message: newestLeaf(session.state, version) }));
  };
  return (
    <span class="versions" role="group" aria-label={t.version(at + 1, all.length)}>
      <Button kind="quiet" little icon="chevron" class="back" aria-label={t.earlier} disabled={at === 0 || !may("member")} onClick={() => to(at - 1)} />
      <span class="at" aria-hidden="true">{at + 1}/{all.length}</span>
      <Button kind="quiet" little icon="chevron" aria-label={t.later} disabled={at === all.length - 1 || !may("member")} onClick={() => to(at + 1)} />
    </span>
  );
}

/** Another answer: by the same model with one click, by another from the list. */
function Again({ session, message }: Props) {
  const t = useWords();
  const agent = useOwnAgent(session.id);
  const models = agent ? modelsOf(agent) : [];
  const rerun = (model?: string) => void attempt(client.rerun(session.id, message.id, model ? { model } : {}));
  return (
    <>
      <Button kind="quiet" little icon="redo" aria-label={t.rerun} onClick={() => rerun()} />
      {models.length > 1 && (
        <Menu button={{ icon: "server", label: t.with }} items={models.map((model) => ({ label: model, isChecked: model === message.by, onSelect: () => rerun(model) }))} />
      )}
    </>
  );
}

function More({ session, message }: Props) {
  const t = useWords();
  const [shown, setShown] = useState<"raw" | "delete" | null>(null);
  const all = choices(session.state, message);
  const at = all.indexOf(message.id);
  const items: MenuItem[] = [{ label: t.link, icon: "link", onSelect: () => void copyLink(session.id, message.id).then(() => toast(t.linked)) }];
  if (may("member")) items.push({ label: t.fork, icon: "branch", onSelect: () => void fork(session, message, t.forked) });
  // With the versions beside it: those before, and those after.
  for (const [number, other] of all.entries()) {
    if (number === at || Math.abs(number - at) > NEAR) continue;
    const [left, right] = [leafThrough(session.state, message.id), newestLeaf(session.state, other)];
    items.push({ label: t.compare(number + 1, all.length), icon: "compare", onSelect: () => go({ page: "compare", session: session.id, left, right }) });
  }
  items.push({ label: t.raw, icon: "eye", onSelect: () => setShown("raw") });
  if (may("member")) items.push({ label: t.remove, icon: "trash", onSelect: () => setShown("delete") });
  return (
    <>
      <Menu button={{ icon: "more", label: t.more }} items={items} />
      {shown === "raw" && <Raw message={message} onClose={() => setShown(null)} />}
      {shown === "delete" && <Delete session={session} message={message} onClose={() => setShown(null)} />}
    </>
  );
}

const NEAR = 4; // versions that are offered on each side

async function copyLink(session: string, message: string): Promise<void> {
  await copyText(new URL(link({ page: "session", session, message }), location.href).href);
}

/** Select a message, so that the next one goes on from there. */
async function fork(session: SessionFollower, message: Message, said: string): Promise<void> {
  const isDone = await attempt(client.select(session.id, { message: message.id }).then(() => true));
  if (!isDone) return;
  toast(said);
  document.querySelector<HTMLElement>("#main .composer textarea, #main textarea")?.focus();
}
