/** All there is to know of a call. */
import type { CallNote, Output, SessionFollower, ToolPart } from "@everturn/client";
import { client } from "../app/app";
import { useTopics } from "../app/store";
import { say } from "../app/words";
import { Arguments, Block, Exact } from "../gates/exact";
import { plain } from "../gates/hidden";
import { parse, pretty } from "../gates/json";
import { sayRule } from "../gates/rule";
import { Badge, Fold, Icon } from "../ui/kit";
import { Attachments } from "./attachments";
import { diff, isDiff, readDiff } from "./diff";
import { Diff } from "./diffview";
import { useExecutor } from "./executor";
import { useCardWords, type CardWords } from "./states";

export function Details({ session, turn: id, part }: { session: SessionFollower; turn: string; part: ToolPart }) {
  const t = useCardWords();
  useTopics(session, `turn:${id}`);
  const turn = session.state.turns.get(id);
  const note = turn?.calls.get(part.call);
  const executor = useExecutor(note?.tool || part.name, part.output?.origin, note?.effects, turn);
  const preview = note?.gates.map((gate) => turn?.gates.get(gate)?.gate.preview).find(Boolean) ?? "";
  const value = parse(part.used || part.arguments) as { old_text?: unknown; new_text?: unknown } | undefined;
  const change = isDiff(preview) ? readDiff(preview)
    : typeof value?.old_text === "string" && typeof value.new_text === "string" ? diff(value.old_text, value.new_text) : null;
  return (
    <div class="details">
      <p class="row wrap small muted">
        {executor.label && <Badge icon={executor.icon}>{t.ran}: {executor.label}</Badge>}
        {executor.effects && <Badge>{executor.effects}</Badge>}
        {note?.started ? <span>{say.moment(note.started)}</span> : null}
      </p>
      {note?.judged && <Judged note={note} t={t} />}
      {part.used ? (
        <>
          <h4>{part.is_edited ? t.edited : t.changed}</h4>
          <p class="small muted">− {t.asked} · + {t.used}</p>
          <Diff lines={diff(pretty(part.arguments) ?? part.arguments, pretty(part.used) ?? part.used)} />
        </>
      ) : null}
      <h4>{t.input}</h4>
      <Arguments text={part.used || part.arguments} clip />
      {change && <><h4>{t.change}</h4><Diff lines={change} /></>}
      {note && note.progress.length > 0 && (
        <Fold open={note.state === "running"} summary={<span class="small">{t.progress} ({note.progress.length})</span>}>
          <ol class="progress">{note.progress.map((line, at) => <li key={at} dir="auto"><Exact text={line} /></li>)}</ol>
        </Fold>
      )}
      {part.output && <><h4>{t.output}</h4><Result session={session} output={part.output} t={t} /></>}
      {part.late && (
        <>
          <h4>{t.late}</h4>
          {note?.late ? <p class="small muted">{t.lateAt(say.time(note.late))}</p> : null}
          <Result session={session} output={part.late} t={t} />
        </>
      )}
    </div>
  );
}

function Judged({ note, t }: { note: CallNote; t: CardWords }) {
  const { allowed, why, rule, gate } = note.judged!;
  return (
    <p class="small judged">
      <Icon name={allowed ? "check" : "close"} /> {allowed ? (gate ? t.byPerson : rule ? t.byRule : t.why) : t.denied}: <span class="muted">{plain(why)}</span>
      {rule && <code>{sayRule(rule)}{rule.source ? ` · ${plain(rule.source)}` : ""}</code>}
    </p>
  );
}

function Result({ session, output, t }: { session: SessionFollower; output: Output; t: CardWords }) {
  const metadata = output.metadata && Object.keys(output.metadata).length ? JSON.stringify(output.metadata) : "";
  return (
    <>
      <p class="row wrap">
        {output.code && <Badge tone="bad">{t.code(plain(output.code))}</Badge>}
        {output.untrusted && <Badge tone="warn" icon="alert">{t.untrusted}</Badge>}
        {output.private && <Badge icon="lock">{t.private}</Badge>}
        {output.sensitive && <Badge icon="lock">{t.sensitive}</Badge>}
        {output.redacted && <Badge icon="edit">{t.redacted}</Badge>}
      </p>
      {output.text ? isDiff(output.text) ? <Diff lines={readDiff(output.text)} /> : <Block text={output.text} clip label={t.output} /> : <p class="small muted">{t.nothing}</p>}
      {output.blob && (
        <p class="small"><span class="muted">{t.excerpt}</span> <a href={client.blobPath(session.id, output.blob)} download="result.txt">{t.whole}</a></p>
      )}
      <Attachments session={session.id} files={output.attachments ?? []} isSeen />
      {metadata && <Fold summary={<span class="small">{t.metadata}</span>}><Block text={pretty(metadata) ?? metadata} clip /></Fold>}
    </>
  );
}
