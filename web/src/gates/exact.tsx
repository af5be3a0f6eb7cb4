/** Text in which every character can be seen: for what a person is about to allow, and for whatever a tool wrote. */
import { useMemo, useState } from "preact/hooks";
import { words } from "../app/words";
import { Button, CopyButton, Icon } from "../ui/kit";
import { isMixedWay, lookalikes, plain, reveal, type HiddenKind } from "./hidden";
import { members, parse, pretty } from "./json";
import "./exact.css";

const useWords = words(
  {
    zero: "invisible", bidi: "turns text around", tag: "invisible tag", control: "control character", space: "unusual blank", filler: "looks like a blank", private: "no known character",
    hidden: (n: number) => (n === 1 ? "One character here cannot be seen. It is written out." : `${n} characters here cannot be seen. They are written out.`),
    turned: "Some letters here are written from right to left. What stands beside them may be shown in another order than it is used in.",
    mixed: (w: string, s: string) => `“${w}” mixes letters of several alphabets: ${s}.`,
    foreign: (w: string, s: string) => `“${w}” looks like Latin letters, and is ${s}.`,
    styled: (w: string, n: string) => `“${w}” is written in unusual characters; plainly it is “${n}”.`,
    raw: "Raw", readable: "Readable", nothing: "No arguments", copy: "Copy", copied: "Copied", all: (n: string) => `Show all (${n} characters)`, less: "Show less",
  },
  {
    zero: "不可见", bidi: "会反转文字方向", tag: "不可见标签", control: "控制字符", space: "特殊空格", filler: "看似空格", private: "未知字符",
    hidden: (n: number) => `这里有 ${n} 个看不见的字符，已用代码标出。`,
    turned: "这里有从右向左书写的文字，其旁边内容的显示顺序可能与实际顺序不同。",
    mixed: (w: string, s: string) => `“${w}”混用了多种字母：${s}。`,
    foreign: (w: string, s: string) => `“${w}”看似拉丁字母，实为 ${s}。`,
    styled: (w: string, n: string) => `“${w}”用了特殊字符，实际读作“${n}”。`,
    raw: "原文", readable: "易读", nothing: "没有参数", copy: "复制", copied: "已复制", all: (n: string) => `显示全部（${n} 个字符）`, less: "收起",
  },
);

const MOST_PIECES = 4000; // that are drawn each by itself; a page of a million of them would stand still

/** A text with what cannot be seen written out. `at` is where it begins in the whole, for whoever selects in it. */
export function Exact({ text, at = 0 }: { text: string; at?: number }) {
  const t = useWords();
  const pieces = useMemo(() => reveal(text), [text]);
  const rest = pieces[MOST_PIECES]?.at;
  return (
    <>
      {pieces.slice(0, MOST_PIECES).map((piece) =>
        piece.kind ? (
          <span key={piece.at} class={`hidden-char ${piece.kind}`} title={`${piece.code}: ${t[piece.kind satisfies HiddenKind]}`} data-at={at + piece.at} data-size={piece.text.length}>
            {piece.code}
          </span>
        ) : (
          <span key={piece.at} data-at={at + piece.at}>{piece.text}</span>
        ),
      )}
      {rest !== undefined && <span key={rest} class="hidden-char" data-at={at + rest} data-size={text.length - rest}>{plain(text.slice(rest))}</span>}
    </>
  );
}

/** What stands out in a text: characters nobody sees, words that look like others. */
export function Oddities({ text }: { text: string }) {
  const t = useWords();
  const count = useMemo(() => reveal(text).filter((piece) => piece.kind).length, [text]);
  const words = useMemo(() => lookalikes(text).slice(0, 6), [text]);
  const isTurned = useMemo(() => isMixedWay(text), [text]);
  if (!count && !words.length && !isTurned) return null;
  return (
    <ul class="oddities">
      {count > 0 && <li><Icon name="alert" /> {t.hidden(count)}</li>}
      {isTurned && <li><Icon name="alert" /> {t.turned}</li>}
      {words.map(({ word, why, scripts }) => (
        <li key={word}>
          <Icon name="alert" /> {why === "styled" ? t.styled(plain(word), plain(word.normalize("NFKC"))) : t[why](plain(word), scripts.join(", "))}
        </li>
      ))}
    </ul>
  );
}

const CLIP = 4000; // characters

/** A block of text, exactly; a long one can be clipped. */
export function Block({ text, clip = false, label }: { text: string; clip?: boolean; label?: string }) {
  const t = useWords();
  const [isAll, setAll] = useState(false);
  const isClipped = clip && text.length > CLIP && !isAll;
  return (
    <div class="exact-block">
      <pre class="exact" dir="auto" tabIndex={0} role="group" aria-label={label}><Exact text={isClipped ? text.slice(0, CLIP) : text} />{isClipped && " …"}</pre>
      <div class="tools">
        <CopyButton text={text} label={t.copy} done={t.copied} />
      </div>
      {clip && text.length > CLIP && (
        <Button little kind="quiet" onClick={() => setAll(!isAll)}>{isAll ? t.less : t.all(text.length.toLocaleString())}</Button>
      )}
    </div>
  );
}

/** Arguments as they would be used: each by its name, or the very text. */
export function Arguments({ text, clip = false }: { text: string; clip?: boolean }) {
  const t = useWords();
  const [isRaw, setRaw] = useState(false);
  const rows = useMemo(() => members(text), [text]);
  if (rows && !rows.length) return <p class="muted small">{t.nothing}</p>;
  // Everything is looked at, as a reader would read it: what is escaped in the raw text is hidden in the value.
  const whole = rows ? rows.map(([name, value]) => `${name} ${readable(value)}`).join("\n") : text;
  return (
    <div class="arguments">
      {isRaw || !rows ? (
        <Block text={text} clip={clip} label={t.raw} />
      ) : (
        <dl>
          {rows.map(([name, value], at) => (
            <div class={value.length > 60 || readable(value).includes("\n") ? "wide" : ""} key={at}>
              <dt dir="auto"><Exact text={name} /></dt>
              <dd><Block text={readable(value)} clip={clip} label={plain(name)} /></dd>
            </div>
          ))}
        </dl>
      )}
      <Oddities text={whole} />
      {rows && <Button little kind="quiet" class="switch" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>{isRaw ? t.readable : t.raw}</Button>}
    </div>
  );
}

/** A text as it is, so that it can be read; everything else, and a text that could be taken for it, as JSON. */
function readable(value: string): string {
  const read = parse(value);
  if (typeof read !== "string") return pretty(value) ?? value;
  return read === "" || read !== read.trim() || parse(read) !== undefined ? value : read;
}
