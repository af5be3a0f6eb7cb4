/** File changes of a step, and the buttons to revert them. */
import { useState } from "preact/hooks";
import type { FileChange, FilesPart, SessionFollower } from "@everturn/client";
import { lazy } from "../app/lazy";
import { hasRole } from "../app/app";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { Badge, Button, Disclosure, Icon } from "../ui/components";
import { revertShownAt } from "./revertPreview";
import "./fileChanges.css";
import { useTexts } from "../locales/fileChanges.gen";

const RevertDialog = lazy(async () => (await import("./revertDialog")).RevertDialog);

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
          <span class="grow">{t.reverted(note.by || t.someone, note.after === part.before ? "before" : "after", format.ago(note.at))}</span>
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
