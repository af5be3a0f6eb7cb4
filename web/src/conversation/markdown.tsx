/** Markdown renderer for the text of a model: none of it ever becomes HTML. */
import type { ComponentChild, VNode } from "preact";
import { useRef } from "preact/hooks";
import { Blocks, openCode, type Block } from "./blocks";
import { Code } from "./code";
import { renderInline } from "./inline";
import { lex, type Token, type Tokens } from "./lexer";
import { Formula } from "./math";
import { saveFile } from "../pages/sessions";
import { showControls } from "./textEscapes";
import { Button, CopyButton } from "../ui/components";
import "./markdown.css";
import { useTexts } from "../locales/markdown.gen";

/** `isLive`: the text still streams. Complete blocks are lexed once, and their nodes stay the same. */
export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const cache = useRef<{ blocks: Blocks; drawn: VNode[]; definitions: string } | null>(null);
  const { current: now } = cache.current ? cache : ((cache.current = { blocks: new Blocks(), drawn: [], definitions: "" }), cache);
  const { blocks } = now!;
  const before = blocks.finished;
  blocks.update(text);
  if (blocks.isPlain) return <div class="markdown"><PlainText text={text} /></div>;
  // A definition turns text before it into links.
  if (now!.definitions !== blocks.definitions || blocks.finished.length < before.length) now!.drawn = [];
  now!.definitions = blocks.definitions;
  for (let index = now!.drawn.length; index < blocks.finished.length; index++) now!.drawn.push(renderBlock(blocks.finished[index]!, index, blocks.definitions));
  const index = blocks.finished.length;
  const isCode = isLive && blocks.isOpenCode;
  const tail = blocks.tail.trim() ? (isCode ? renderOpenBlock(blocks.tail, index) : renderBlock(blocks.all[index]!, index, blocks.definitions)) : null;
  return <div class="markdown">{now!.drawn}{tail}</div>;
}

function renderBlock(block: Block, index: number, definitions: string): VNode {
  return <BlockView key={index} block={block} definitions={definitions} />;
}

function renderOpenBlock(source: string, index: number): VNode {
  return <BlockView key={index} open={source} />;
}

interface BlockProps {
  block?: Block;
  open?: string;
  definitions?: string;
}

function BlockView({ block, open, definitions = "" }: BlockProps) {
  if (open !== undefined) {
    const { language, text } = openCode(open);
    return <div class="block">{[<Code key={0} text={text} language={language} isOpen />]}</div>;
  }
  return <div class="block">{blockContent(block!, definitions)}</div>;
}

function blockContent({ source, isPlain }: Block, definitions: string): ComponentChild {
  if (isPlain) return <PlainText text={source} />;
  try {
    return lex(source, definitions).map((token, index) => renderToken(token, index, 0));
  } catch {
    return <PlainText text={source} />; // nested deeper than the lexer can go
  }
}

const CHUNK = 5000; // characters that are laid out at once

/** Plain text. A long text is laid out only where it is visible: a line of a million characters would freeze the browser. */
function PlainText({ text }: { text: string }) {
  const whole = showControls(text);
  const pieces: string[] = [];
  for (let from = 0; from < whole.length; ) {
    let to = Math.min(from + CHUNK, whole.length);
    const line = to < whole.length ? whole.lastIndexOf("\n", to - 1) + 1 : 0;
    if (line > from) to = line;
    else if (/[\ud800-\udbff]/.test(whole[to - 1]!)) to += 1; // surrogate pairs stay together
    pieces.push(whole.slice(from, to));
    from = to;
  }
  return <pre class="plain">{pieces.length > 1 ? pieces.map((piece, index) => <span class="piece" key={index}>{piece}</span>) : whole}</pre>;
}

const MAX_DEPTH = 12;

function renderToken(token: Token, key: number, depth: number): ComponentChild {
  if (depth > MAX_DEPTH) return <PlainText text={token.raw} />;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p key={key} dir="auto">{renderInline(token.tokens)}</p>;
    case "text": // in a tight list
      return <span key={key}>{token.tokens ? renderInline(token.tokens) : showControls(token.text)}</span>;
    case "heading": {
      // The page has its own h1 and h2; the headings of an answer start below.
      const Tag = `h${Math.min(token.depth + 2, 6)}` as "h3";
      return <Tag key={key} dir="auto" class={`h${token.depth}`}>{renderInline(token.tokens)}</Tag>;
    }
    case "code":
      return <Code key={key} text={token.text} language={token.lang ?? ""} />;
    case "blockquote":
      return <blockquote key={key} dir="auto">{renderTokens(token.tokens ?? [], depth)}</blockquote>;
    case "list":
      return <List key={key} list={token as Tokens.List} depth={depth} />;
    case "table":
      return <Table key={key} table={token as Tokens.Table} />;
    case "hr":
      return <hr key={key} />;
    case "math":
      return <p key={key}><Formula text={token.text} isDisplay /></p>;
    case "html":
      return <p key={key} dir="auto" class="raw">{showControls(token.raw.trimEnd())}</p>;
    default:
      return renderInline([token]);
  }
}

function renderTokens(tokens: readonly Token[], depth: number): ComponentChild[] {
  return tokens.map((token, index) => renderToken(token, index, depth + 1));
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const items = list.items.map((item, index) => (
    <li key={index} dir="auto" class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "☑" : "☐"} />}
      {renderTokens(item.tokens.filter((token) => token.type !== "checkbox"), depth)}
    </li>
  ));
  return list.ordered ? <ol start={list.start === "" ? undefined : list.start}>{items}</ol> : <ul>{items}</ul>;
}

const MAX_ROWS = 400;
const MAX_COLUMNS = 60;

function Table({ table }: { table: Tokens.Table }) {
  const t = useTexts();
  const rows = table.rows.slice(0, MAX_ROWS);
  const cells = (row: Tokens.TableCell[], Tag: "th" | "td") =>
    row.slice(0, MAX_COLUMNS).map((cell, index) => <Tag key={index} dir="auto" class={cell.align ?? undefined}>{renderInline(cell.tokens)}</Tag>);
  const save = async () => {
    const { toCsv } = await import("./saveText");
    saveFile(new Blob([toCsv([table.header, ...table.rows].map((row) => row.map((cell) => cell.text)))], { type: "text/csv" }), "table.csv");
  };
  return (
    <div class="table-frame">
      <div class="table" tabIndex={0} role="region" aria-label={t.table}>
        <table>
          <thead><tr>{cells(table.header, "th")}</tr></thead>
          <tbody>{rows.map((row, index) => <tr key={index}>{cells(row, "td")}</tr>)}</tbody>
        </table>
        {table.rows.length > rows.length && <p class="muted small">{t.more(table.rows.length - rows.length)}</p>}
      </div>
      <div class="table-actions">
        <CopyButton text={table.raw.trim()} label={t.copy} done={t.copied} />
        <Button kind="quiet" little icon="download" aria-label={t.save} onClick={() => void save()} />
      </div>
    </div>
  );
}
