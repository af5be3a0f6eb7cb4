/** A result that a person reads before the model does: as it is, or with something taken out. */
import type { Gate } from "@everturn/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { say, words } from "../app/words";
import { Button, Field, Fold, Icon } from "../ui/kit";
import { Attachments } from "../tools/attachments";
import type { Said } from "./answering";
import { Block, Exact, Oddities } from "./exact";
import { plain } from "./hidden";
import { MARK, left, places, redact, redactAll, restore, stretches, undo, whole, type Cut } from "./redaction";
import { selectByKey, selectedIn } from "./selecting";

const useWords = words(
  {
    title: "The model would read exactly this", how: "Select what it must not read, then redact. By keyboard: arrows and Shift select, R redacts.", redact: "Redact the selection", all: "Redact all that reads the same", undo: "Undo",
    find: "Redact a text wherever it stands", findAll: (n: number) => (n ? `Redact ${n} ${n === 1 ? "place" : "places"}` : "Not found"), taken: (n: number) => (n === 1 ? "One redaction" : `${n} redactions`), back: "Put back", show: "Show", preview: "What the model will read",
    asIs: "Send as it is", redacted: "Send redacted", withhold: "Withhold …", excerpt: "This is an excerpt. What was left out stays here, and is not sent.", drops: "Attachments and data beside the text are dropped when something is redacted.", empty: "The result is empty.",
    characters: (n: string) => `${n} characters`,
  },
  {
    title: "模型将一字不差地读到以下内容", how: "选中不应被读取的内容，然后遮盖。键盘：方向键与 Shift 选择，R 遮盖。", redact: "遮盖所选内容", all: "遮盖所有相同文字", undo: "撤销",
    find: "遮盖某段文字的所有出现", findAll: (n: number) => (n ? `遮盖 ${n} 处` : "未找到"), taken: (n: number) => `已遮盖 ${n} 处`, back: "恢复", show: "查看", preview: "模型将读到",
    asIs: "原样发送", redacted: "发送遮盖后的内容", withhold: "不发送…", excerpt: "这是节选。其余部分留在这里，不会发送。", drops: "一旦遮盖，附件与文本之外的数据都会一并去掉。", empty: "结果为空。",
    characters: (n: string) => `${n} 个字符`,
  },
);

/** `said` is told what a key would send: never what was taken out. */
export function Review({ gate, session, isReady, said, onSend, onWithhold }: {
  gate: Gate; session: string; isReady: boolean; said: { current: () => Said }; onSend: (said: Said) => void; onWithhold: () => void;
}) {
  const t = useWords();
  const output = gate.output!;
  const [made, setMade] = useState(() => whole(output.text));
  const [chosen, setChosen] = useState<Cut | null>(null);
  const [find, setFind] = useState("");
  const text = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const look = () => text.current && setChosen(selectedIn(text.current));
    document.addEventListener("selectionchange", look);
    return () => document.removeEventListener("selectionchange", look);
  }, []);
  const take = (how: "this" | "all") => {
    const now = (text.current && selectedIn(text.current)) ?? chosen;
    if (!now) return;
    setMade(how === "all" ? redactAll(made, made.text.slice(now.from, now.to)) : redact(made, now.from, now.to));
    document.getSelection()?.removeAllRanges();
    setChosen(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.key === "r" || event.key === "Delete" || event.key === "Backspace") && chosen && !event.ctrlKey && !event.metaKey && !event.altKey) take("this");
    else if (event.key === "z" && (event.ctrlKey || event.metaKey)) setMade(undo(made));
    else if (!selectByKey(event.currentTarget as HTMLElement, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const found = places(made, find).length;
  const hasCuts = made.cuts.length > 0;
  said.current = () => (hasCuts ? { allow: "once", text: left(made) } : { allow: "once" });
  return (
    <div class="review">
      <p class="label">{t.title} <span class="muted small">({t.characters(say.number(left(made).length))})</span></p>
      {output.text ? (
        <pre class="exact text" dir="auto" tabIndex={0} role="group" aria-label={t.title} ref={text} onKeyDown={onKeyDown}>
          {stretches(made).map((one) => one.isCut
            ? <span key={one.at} class="cut" data-at={one.at} data-size={one.text.length}>{MARK}</span>
            : <Exact key={one.at} text={one.text} at={one.at} />)}
        </pre>
      ) : <p class="muted">{t.empty}</p>}
      <Oddities text={output.text} />
      {output.blob && <p class="small warn"><Icon name="alert" /> {t.excerpt}</p>}
      <Attachments session={session} files={output.attachments ?? []} />
      <p class="small muted">{t.how}</p>
      <div class="row wrap" onPointerDown={(event) => event.preventDefault() /* the selection stays */}>
        <Button icon="edit" disabled={!chosen} onClick={() => take("this")}>{t.redact}</Button>
        <Button disabled={!chosen} onClick={() => take("all")}>{t.all}</Button>
        <Button icon="revert" kind="quiet" disabled={!made.before} onClick={() => setMade(undo(made))}>{t.undo}</Button>
      </div>
      <Fold summary={<span class="small">{t.find}</span>}>
        <div class="row wrap end">
          <div class="grow"><Field label={t.find}><input class="input mono" value={find} spellcheck={false} onInput={(event) => setFind(event.currentTarget.value)} /></Field></div>
          <Button disabled={!found} onClick={() => { setMade(redactAll(made, find)); setFind(""); }}>{find ? t.findAll(found) : t.all}</Button>
        </div>
      </Fold>
      {hasCuts && (
        <Fold summary={<span class="small">{t.taken(made.cuts.length)}</span>}>
          <ul class="cuts">
            {made.cuts.map((cut, at) => (
              <li class="row" key={cut.from}>
                <code class="grow ellipsis">{plain(made.text.slice(cut.from, cut.to).slice(0, 80))}</code>
                <Button little kind="quiet" onClick={() => setMade(restore(made, at))}>{t.back}</Button>
              </li>
            ))}
          </ul>
        </Fold>
      )}
      {hasCuts && <Fold summary={<span class="small">{t.preview}</span>}><Block text={left(made)} label={t.preview} /><p class="small muted">{t.drops}</p></Fold>}
      <div class="row wrap actions" aria-disabled={!isReady}>
        {hasCuts
          ? <Button kind="primary" icon="check" onClick={() => onSend(said.current())}>{t.redacted} <kbd>Y</kbd></Button>
          : <Button kind="primary" icon="check" onClick={() => onSend(said.current())}>{t.asIs} <kbd>Y</kbd></Button>}
        <Button kind="danger" icon="close" onClick={onWithhold}>{t.withhold} <kbd>N</kbd></Button>
      </div>
    </div>
  );
}
