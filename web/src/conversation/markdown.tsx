/** Text of a model, drawn as markdown: nothing of it is ever markup for the browser. */
import type { ComponentChild, VNode } from "preact";
import { useRef } from "preact/hooks";
import { words } from "../app/words";
import { Blocks, openCode, type Block } from "./blocks";
import { Code } from "./code";
import { inline } from "./inline";
import { tokens, type Token, type Tokens } from "./lexing";
import { Formula } from "./math";
import { visible } from "./plain";
import "./markdown.css";

/** `isLive`: more will come. Blocks that are finished are read once, and their nodes stay the same. */
export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const kept = useRef<{ blocks: Blocks; drawn: VNode[]; definitions: string } | null>(null);
  const { current: now } = kept.current ? kept : ((kept.current = { blocks: new Blocks(), drawn: [], definitions: "" }), kept);
  const { blocks } = now!;
  const before = blocks.finished;
  blocks.update(text);
  if (blocks.isPlain) return <div class="markdown"><Plain text={text} /></div>;
  // A definition makes links of what stands before it.
  if (now!.definitions !== blocks.definitions || blocks.finished.length < before.length) now!.drawn = [];
  now!.definitions = blocks.definitions;
  for (let at = now!.drawn.length; at < blocks.finished.length; at++) now!.drawn.push(drawn(blocks.finished[at]!, at, blocks.definitions));
  const at = blocks.finished.length;
  const isCode = isLive && blocks.isOpenCode;
  const tail = blocks.tail.trim() ? (isCode ? openBlock(blocks.tail, at) : drawn(blocks.all[at]!, at, blocks.definitions)) : null;
  return <div class="markdown">{now!.drawn}{tail}</div>;
}

function drawn(block: Block, at: number, definitions: string): VNode {
  return <One key={at} block={block} definitions={definitions} />;
}

function openBlock(source: string, at: number): VNode {
  return <One key={at} open={source} />;
}

interface OneProps {
  block?: Block;
  open?: string;
  definitions?: string;
}

function One({ block, open, definitions = "" }: OneProps) {
  if (open !== undefined) {
    const { language, text } = openCode(open);
    return <div class="block">{[<Code key={0} text={text} language={language} isOpen />]}</div>;
  }
  return <div class="block">{content(block!, definitions)}</div>;
}

function content({ source, isPlain }: Block, definitions: string): ComponentChild {
  if (isPlain) return <Plain text={source} />;
  try {
    return tokens(source, definitions).map((token, at) => block(token, at, 0));
  } catch {
    return <Plain text={source} />; // deeper than the reader can go
  }
}

const PIECE = 5000; // characters that are laid out at once

/** As it was written. A long text is laid out only where somebody looks: a line of a million characters would stop the page. */
function Plain({ text }: { text: string }) {
  const whole = visible(text);
  const pieces: string[] = [];
  for (let from = 0; from < whole.length; ) {
    let to = Math.min(from + PIECE, whole.length);
    const line = to < whole.length ? whole.lastIndexOf("\n", to - 1) + 1 : 0;
    if (line > from) to = line;
    else if (/[\ud800-\udbff]/.test(whole[to - 1]!)) to += 1; // the two halves of a character stay together
    pieces.push(whole.slice(from, to));
    from = to;
  }
  return <pre class="plain">{pieces.length > 1 ? pieces.map((piece, at) => <span class="piece" key={at}>{piece}</span>) : whole}</pre>;
}

const DEEPEST = 12;

function block(token: Token, key: number, depth: number): ComponentChild {
  if (depth > DEEPEST) return <Plain text={token.raw} />;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p key={key} dir="auto">{inline(token.tokens)}</p>;
    case "text": // in a list whose items are tight
      return <span key={key}>{token.tokens ? inline(token.tokens) : visible(token.text)}</span>;
    case "heading": {
      // The page has its own first two; those of an answer begin below.
      const Tag = `h${Math.min(token.depth + 2, 6)}` as "h3";
      return <Tag key={key} dir="auto" class={`h${token.depth}`}>{inline(token.tokens)}</Tag>;
    }
    case "code":
      return <Code key={key} text={token.text} language={token.lang ?? ""} />;
    case "blockquote":
      return <blockquote key={key} dir="auto">{within(token.tokens ?? [], depth)}</blockquote>;
    case "list":
      return <List key={key} list={token as Tokens.List} depth={depth} />;
    case "table":
      return <Table key={key} table={token as Tokens.Table} />;
    case "hr":
      return <hr key={key} />;
    case "math":
      return <p key={key}><Formula text={token.text} isDisplay /></p>;
    case "html":
      return <p key={key} dir="auto" class="raw">{visible(token.raw.trimEnd())}</p>;
    default:
      return inline([token]);
  }
}

function within(some: readonly Token[], depth: number): ComponentChild[] {
  return some.map((token, at) => block(token, at, depth + 1));
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const items = list.items.map((item, at) => (
    <li key={at} dir="auto" class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "☑" : "☐"} />}
      {within(item.tokens.filter((token) => token.type !== "checkbox"), depth)}
    </li>
  ));
  return list.ordered ? <ol start={list.start === "" ? undefined : list.start}>{items}</ol> : <ul>{items}</ul>;
}

const useWords = words(
  { more: (count: number) => `${count} more rows are not drawn; they are in the text that can be copied.`, table: "Table" },
  { more: (count: number) => `还有 ${count} 行没有画出来；复制文本时会包含它们。`, table: "表格" },
);

const MOST_ROWS = 400;
const MOST_COLUMNS = 60;

function Table({ table }: { table: Tokens.Table }) {
  const t = useWords();
  const rows = table.rows.slice(0, MOST_ROWS);
  const cells = (row: Tokens.TableCell[], Tag: "th" | "td") =>
    row.slice(0, MOST_COLUMNS).map((cell, at) => <Tag key={at} dir="auto" class={cell.align ?? undefined}>{inline(cell.tokens)}</Tag>);
  return (
    <div class="table" tabIndex={0} role="region" aria-label={t.table}>
      <table>
        <thead><tr>{cells(table.header, "th")}</tr></thead>
        <tbody>{rows.map((row, at) => <tr key={at}>{cells(row, "td")}</tr>)}</tbody>
      </table>
      {table.rows.length > rows.length && <p class="muted small">{t.more(table.rows.length - rows.length)}</p>}
    </div>
  );
}
