/** Details of a tool call: decision, arguments, progress, result. */
import type { CallRecord, Output, SessionFollower, ToolPart } from "@everturn/client";
import { client } from "../app/app";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { Arguments, TextBlock, VisibleText } from "../gates/visibleText";
import { escapeInvisible } from "../gates/invisibleChars";
import { parseJson, prettyJson } from "../gates/json";
import { reasonText } from "../gates/reasons";
import { formatRule } from "../gates/ruleText";
import { Badge, Disclosure, Icon } from "../ui/components";
import { Attachments } from "./attachments";
import { diff, isDiff, readDiff } from "./diff";
import { Diff } from "./diffView";
import { useExecutor } from "./executor";
import { useCardTexts, type CardTexts } from "./states";

export function Details({ session, turn: id, part }: { session: SessionFollower; turn: string; part: ToolPart }) {
  const t = useCardTexts();
  useTopics(session, `turn:${id}`);
  const turn = session.state.turns.get(id);
  const note = turn?.calls.get(part.call);
  const executor = useExecutor(note?.tool || part.name, part.output?.origin, note, turn);
  const preview = note?.gates.map((gate) => turn?.gates.get(gate)?.gate.preview).find(Boolean) ?? "";
  const value = parseJson(part.used || part.arguments) as { old_text?: unknown; new_text?: unknown } | undefined;
  const change = isDiff(preview) ? readDiff(preview)
    : typeof value?.old_text === "string" && typeof value.new_text === "string" ? diff(value.old_text, value.new_text) : null;
  return (
    <div class="details">
      <p class="row wrap small muted">
        {executor.label && <Badge icon={executor.icon}>{t.ran}: {executor.label}</Badge>}
        {executor.effect && <Badge>{executor.effect}</Badge>}
        {note?.started ? <span>{format.moment(note.started)}</span> : null}
      </p>
      {note?.decision && <PermissionDecision note={note} t={t} />}
      {part.used ? (
        <>
          <h4>{part.is_edited ? t.edited : t.changed}</h4>
          <p class="small muted">− {t.asked} · + {t.used}</p>
          <Diff lines={diff(prettyJson(part.arguments) ?? part.arguments, prettyJson(part.used) ?? part.used)} />
        </>
      ) : null}
      <h4>{t.input}</h4>
      <Arguments text={part.used || part.arguments} tool={part.name} clip />
      {change && <><h4>{t.change}</h4><Diff lines={change} /></>}
      {note && note.progress.length > 0 && (
        <Disclosure open={note.state === "running"} summary={<span class="small">{t.progress} ({note.progress.length})</span>}>
          <ol class="progress">{note.progress.map((line, index) => <li key={index} dir="auto"><VisibleText text={line} /></li>)}</ol>
        </Disclosure>
      )}
      {part.output && <><h4>{t.output}</h4><ToolOutput session={session} output={part.output} t={t} /></>}
      {part.late && (
        <>
          <h4>{t.late}</h4>
          {note?.late ? <p class="small muted">{t.lateAt(format.time(note.late))}</p> : null}
          <ToolOutput session={session} output={part.late} t={t} />
        </>
      )}
    </div>
  );
}

function PermissionDecision({ note, t }: { note: CallRecord; t: CardTexts }) {
  const { allowed, why, rule, gate } = note.decision!;
  return (
    <p class="small decision">
      <Icon name={allowed ? "check" : "close"} /> {allowed ? (gate ? t.byPerson : rule ? t.byRule : t.why) : t.denied}: <span class="muted">{reasonText(why)}</span>
      {rule && <code>{formatRule(rule)}{rule.source ? ` · ${escapeInvisible(rule.source)}` : ""}</code>}
    </p>
  );
}

function ToolOutput({ session, output, t }: { session: SessionFollower; output: Output; t: CardTexts }) {
  const metadata = output.metadata && Object.keys(output.metadata).length ? JSON.stringify(output.metadata) : "";
  return (
    <>
      <p class="row wrap">
        {output.code && <Badge tone="bad">{t.code(escapeInvisible(output.code))}</Badge>}
        {output.untrusted && <Badge tone="warn" icon="alert">{t.untrusted}</Badge>}
        {output.private && <Badge icon="lock">{t.private}</Badge>}
        {output.sensitive && <Badge icon="lock">{t.sensitive}</Badge>}
        {output.redacted && <Badge icon="edit">{t.redacted}</Badge>}
      </p>
      {output.text ? isDiff(output.text) ? <Diff lines={readDiff(output.text)} /> : <TextBlock text={output.text} clip label={t.output} /> : <p class="small muted">{t.nothing}</p>}
      {output.blob && (
        <p class="small"><span class="muted">{t.excerpt}</span> <a href={client.blobPath(session.id, output.blob)} download="result.txt">{t.whole}</a></p>
      )}
      <Attachments session={session.id} files={output.attachments ?? []} isSeen />
      {metadata && <Disclosure summary={<span class="small">{t.metadata}</span>}><TextBlock text={prettyJson(metadata) ?? metadata} clip /></Disclosure>}
    </>
  );
}
