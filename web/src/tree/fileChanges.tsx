/** File changes of a step, and the buttons to revert them. */
import { useState } from "preact/hooks";
import type { FileChange, FilesPart, SessionFollower } from "@everturn/client";
import { lazy } from "../app/lazy";
import { hasRole } from "../app/app";
import { useTopics } from "../app/store";
import { format, defineTexts } from "../app/texts";
import { Badge, Button, Disclosure, Icon } from "../ui/components";
import { revertShownAt } from "./revertPreview";
import "./fileChanges.css";

const RevertDialog = lazy(async () => (await import("./revertDialog")).RevertDialog);

const useTexts = defineTexts(
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

const MAX_SHOWN = 12; // files that are shown at first

export function FileChanges({ session, part }: { session: SessionFollower; part: FilesPart }) {
  const t = useTexts();
  useTopics(session, "tree");
  const [revertTarget, setRevertTarget] = useState<"before" | "after" | "back" | null>(null);
  const [isWhole, setWhole] = useState(false);
  const changes = part.changes ?? [];
  const [plus, minus] = changes.reduce(([a, b], change) => [a + (change.added ?? 0), b + (change.removed ?? 0)], [0, 0] as [number, number]);
  const note = revertShownAt(session.state, part);
  const shown = isWhole ? changes : changes.slice(0, MAX_SHOWN);
  return (
    <div class="files-changed">
      <Disclosure summary={
        <span class="row wrap grow">
          <Icon name="file" />
          <span>{t.title(changes.length)}</span>
          <LineCount plus={plus} minus={minus} title={t.lines(plus, minus)} />
          <span class="small muted ellipsis">{part.root || t.own}</span>
        </span>
      }>
        <ul class="changes">
          {shown.map((change) => <ChangedFile key={change.path} change={change} />)}
          {shown.length < changes.length && <li><Button little kind="quiet" onClick={() => setWhole(true)}>{t.all(changes.length)}</Button></li>}
        </ul>
        {hasRole("approver") && (
          <div class="row wrap ways">
            <Button little icon="revert" onClick={() => setRevertTarget("before")}>{t.before}</Button>
            <Button little kind="quiet" onClick={() => setRevertTarget("after")}>{t.after}</Button>
          </div>
        )}
      </Disclosure>
      {note && (
        <p class="reverted small row wrap">
          <Icon name="revert" />
          <span class="grow">{t.reverted(note.by || t.someone, format.ago(note.at), note.after === part.before ? "before" : "after")}</span>
          {hasRole("approver") && <Button little onClick={() => setRevertTarget("back")}>{t.back}</Button>}
        </p>
      )}
      {revertTarget && <RevertDialog session={session} part={part} to={revertTarget} note={note} onClose={() => setRevertTarget(null)} />}
    </div>
  );
}

function ChangedFile({ change }: { change: FileChange }) {
  const t = useTexts();
  const tone = { added: "good", deleted: "bad", modified: undefined } as const;
  return (
    <li class="row">
      <Badge tone={tone[change.kind]}>{t[change.kind]}</Badge>
      <code class="path" dir="ltr">{change.path}</code>
      <LineCount plus={change.added ?? 0} minus={change.removed ?? 0} title={t.lines(change.added ?? 0, change.removed ?? 0)} />
    </li>
  );
}

function LineCount({ plus, minus, title }: { plus: number; minus: number; title: string }) {
  if (!plus && !minus) return null;
  return (
    <span class="count small" title={title}>
      <span class="visually-hidden">{title}</span>
      <span aria-hidden="true">{plus > 0 && <span class="plus">+{plus}</span>} {minus > 0 && <span class="minus">−{minus}</span>}</span>
    </span>
  );
}
