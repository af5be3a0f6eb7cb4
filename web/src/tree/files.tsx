/** What became of files in a step, and the way back. */
import { useState } from "preact/hooks";
import type { FileChange, FilesPart, SessionFollower } from "@everturn/client";
import { lazy } from "../app/lazy";
import { may } from "../app/app";
import { useTopics } from "../app/store";
import { say, words } from "../app/words";
import { Badge, Button, Fold, Icon } from "../ui/kit";
import { revertTo } from "./reverting";
import "./files.css";

const Revert = lazy(async () => (await import("./revert")).Revert);

const useWords = words(
  {
    title: (count: number) => (count === 1 ? "1 file changed" : `${count} files changed`), added: "new", deleted: "deleted", modified: "changed",
    lines: (plus: number, minus: number) => `${plus} ${plus === 1 ? "line" : "lines"} added, ${minus} removed`, before: "Revert to before this step…", after: "Revert to after this step…",
    own: "files of this conversation", back: "Take it back…",
    reverted: (by: string, when: string, to: "before" | "after") => `${by} put the files back to ${to} this step · ${when}`,
    someone: "Somebody", all: (count: number) => `Show all ${count}`,
  },
  {
    title: (count: number) => `${count} 个文件有变化`, added: "新增", deleted: "删除", modified: "修改",
    lines: (plus: number, minus: number) => `新增 ${plus} 行，删除 ${minus} 行`, before: "恢复到此步骤之前…", after: "恢复到此步骤之后…",
    own: "此对话的文件", back: "撤回恢复…",
    reverted: (by: string, when: string, to: "before" | "after") => `${by} 已将文件恢复到此步骤${to === "before" ? "之前" : "之后"} · ${when}`,
    someone: "有人", all: (count: number) => `显示全部 ${count} 个`,
  },
);

const SHOWN = 12; // files, until somebody wants all of them

export function FilesChanged({ session, part }: { session: SessionFollower; part: FilesPart }) {
  const t = useWords();
  useTopics(session, "tree");
  const [asked, setAsked] = useState<"before" | "after" | "back" | null>(null);
  const [isWhole, setWhole] = useState(false);
  const changes = part.changes ?? [];
  const [plus, minus] = changes.reduce(([a, b], one) => [a + (one.added ?? 0), b + (one.removed ?? 0)], [0, 0] as [number, number]);
  const note = revertTo(session.state, part);
  const shown = isWhole ? changes : changes.slice(0, SHOWN);
  return (
    <div class="files-changed">
      <Fold summary={
        <span class="row wrap grow">
          <Icon name="file" />
          <span>{t.title(changes.length)}</span>
          <Count plus={plus} minus={minus} title={t.lines(plus, minus)} />
          <span class="small muted ellipsis">{part.root || t.own}</span>
        </span>
      }>
        <ul class="changes">
          {shown.map((one) => <Changed key={one.path} change={one} />)}
          {shown.length < changes.length && <li><Button little kind="quiet" onClick={() => setWhole(true)}>{t.all(changes.length)}</Button></li>}
        </ul>
        {may("approver") && (
          <div class="row wrap ways">
            <Button little icon="revert" onClick={() => setAsked("before")}>{t.before}</Button>
            <Button little kind="quiet" onClick={() => setAsked("after")}>{t.after}</Button>
          </div>
        )}
      </Fold>
      {note && (
        <p class="reverted small row wrap">
          <Icon name="revert" />
          <span class="grow">{t.reverted(note.by || t.someone, say.ago(note.at), note.after === part.before ? "before" : "after")}</span>
          {may("approver") && <Button little onClick={() => setAsked("back")}>{t.back}</Button>}
        </p>
      )}
      {asked && <Revert session={session} part={part} to={asked} note={note} onClose={() => setAsked(null)} />}
    </div>
  );
}

function Changed({ change }: { change: FileChange }) {
  const t = useWords();
  const tone = { added: "good", deleted: "bad", modified: undefined } as const;
  return (
    <li class="row">
      <Badge tone={tone[change.kind]}>{t[change.kind]}</Badge>
      <code class="path" dir="ltr">{change.path}</code>
      <Count plus={change.added ?? 0} minus={change.removed ?? 0} title={t.lines(change.added ?? 0, change.removed ?? 0)} />
    </li>
  );
}

function Count({ plus, minus, title }: { plus: number; minus: number; title: string }) {
  if (!plus && !minus) return null;
  return (
    <span class="count small" title={title}>
      <span class="visually-hidden">{title}</span>
      <span aria-hidden="true">{plus > 0 && <span class="plus">+{plus}</span>} {minus > 0 && <span class="minus">−{minus}</span>}</span>
    </span>
  );
}
