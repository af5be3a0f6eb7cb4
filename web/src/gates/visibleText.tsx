/** Text in which every character is visible: for what a person is about to approve, and for tool output. */
import { useMemo, useState } from "preact/hooks";
import { tools } from "../app/app";
import { useStore } from "../app/store";
import { Button, CopyButton, Icon } from "../ui/components";
import { isMixedDirection, findLookalikes, escapeInvisible, splitInvisible, type InvisibleKind } from "./invisibleChars";
import { objectMembers, orderMembers, parseJson, prettyJson } from "./json";
import "./visibleText.css";
import { useTexts } from "../locales/visibleText.gen";

const MAX_PIECES = 4000; // elements that are drawn; a million of them would freeze the browser

/** A text with invisible characters written out. `at` is its offset in the whole text, for selections. */
export function VisibleText({ text, at = 0 }: { text: string; at?: number }) {
  const t = useTexts();
  const pieces = useMemo(() => splitInvisible(text), [text]);
  const rest = pieces[MAX_PIECES]?.at;
  return (
    <>
      {pieces.slice(0, MAX_PIECES).map((piece) =>
        piece.kind ? (
          <span key={piece.at} class={`hidden-char ${piece.kind}`} title={`${piece.code}: ${t[piece.kind satisfies InvisibleKind]}`} data-at={at + piece.at} data-size={piece.text.length}>
            {piece.code}
          </span>
        ) : (
          <span key={piece.at} data-at={at + piece.at}>{piece.text}</span>
        ),
      )}
      {rest !== undefined && <span key={rest} class="hidden-char" data-at={at + rest} data-size={text.length - rest}>{escapeInvisible(text.slice(rest))}</span>}
    </>
  );
}

/** Warnings about a text: invisible characters, lookalike words, mixed direction. */
export function TextWarnings({ text }: { text: string }) {
  const t = useTexts();
  const count = useMemo(() => splitInvisible(text).filter((piece) => piece.kind).length, [text]);
  const words = useMemo(() => findLookalikes(text).slice(0, 6), [text]);
  const isMixed = useMemo(() => isMixedDirection(text), [text]);
  if (!count && !words.length && !isMixed) return null;
  return (
    <ul class="text-warnings">
      {count > 0 && <li><Icon name="alert" /> {t.hidden(count)}</li>}
      {isMixed && <li><Icon name="alert" /> {t.turned}</li>}
      {words.map(({ word, why, scripts }) => (
        <li key={word}>
          <Icon name="alert" /> {why === "styled" ? t.styled(escapeInvisible(word), escapeInvisible(word.normalize("NFKC"))) : t[why](escapeInvisible(word), scripts.join(", "))}
        </li>
      ))}
    </ul>
  );
}

const CLIP_LENGTH = 4000; // characters

/** A block of text, unchanged; a long one can be clipped. */
export function TextBlock({ text, clip = false, label }: { text: string; clip?: boolean; label?: string }) {
  const t = useTexts();
  const [isAll, setAll] = useState(false);
  const isClipped = clip && text.length > CLIP_LENGTH && !isAll;
  return (
    <div class="text-block">
      <pre class="visible-text" dir="auto" tabIndex={0} role="group" aria-label={label}><VisibleText text={isClipped ? text.slice(0, CLIP_LENGTH) : text} />{isClipped && " …"}</pre>
      <div class="tools">
        <CopyButton text={text} label={t.copy} done={t.copied} />
      </div>
      {clip && text.length > CLIP_LENGTH && (
        <Button little kind="quiet" onClick={() => setAll(!isAll)}>{isAll ? t.less : t.all(text.length)}</Button>
      )}
    </div>
  );
}

/** Arguments of a call: by name, in the order of the tool's schema, or as raw text. */
export function Arguments({ text, tool = "", clip = false }: { text: string; tool?: string; clip?: boolean }) {
  const t = useTexts();
  const [isRaw, setRaw] = useState(false);
  const schema = useStore(tools)?.tools.find(({ name }) => name === tool)?.schema;
  const rows = useMemo(() => {
    const members = objectMembers(text);
    return members && orderMembers(members, schema);
  }, [text, schema]);
  if (rows && !rows.length) return <p class="muted small">{t.nothing}</p>;
  // The values are checked, not the raw text: what is escaped in the raw text is invisible in the value.
  const whole = rows ? rows.map(([name, value]) => `${name} ${readableValue(value)}`).join("\n") : text;
  return (
    <div class="arguments">
      {isRaw || !rows ? (
        <TextBlock text={text} clip={clip} label={t.raw} />
      ) : (
        <dl>
          {rows.map(([name, value], index) => (
            <div class={value.length > 60 || readableValue(value).includes("\n") ? "wide" : ""} key={index}>
              <dt dir="auto"><VisibleText text={name} /></dt>
              <dd><TextBlock text={readableValue(value)} clip={clip} label={escapeInvisible(name)} /></dd>
            </div>
          ))}
        </dl>
      )}
      <TextWarnings text={whole} />
      {rows && <Button little kind="quiet" class="switch" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>{isRaw ? t.readable : t.raw}</Button>}
    </div>
  );
}

/** A string as its text, so that it can be read; everything else, and a string that looks like JSON, as JSON. */
function readableValue(value: string): string {
  const parsed = parseJson(value);
  if (typeof parsed !== "string") return prettyJson(value) ?? value;
  return parsed === "" || parsed !== parsed.trim() || parseJson(parsed) !== undefined ? value : parsed;
}
