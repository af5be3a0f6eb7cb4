/** The text of a message as it is read aloud: without Markdown, code blocks and addresses. */
import { lex, type Token, type Tokens } from "../conversation/lexer";
import { decodeEntities } from "../conversation/textEscapes";

const MAX_DEPTH = 16;

export function spokenText(markdown: string): string {
  try {
    return blocks(lex(markdown), 0).filter(Boolean).join("\n");
  } catch {
    return markdown; // nested deeper than the lexer can go
  }
}

function blocks(tokens: readonly Token[], depth: number): string[] {
  return depth > MAX_DEPTH ? [] : tokens.map((token) => block(token, depth).trim());
}

function block(token: Token, depth: number): string {
  switch (token.type) {
    case "code":
    case "hr":
    case "html":
    case "space":
    case "def":
    case "checkbox":
      return "";
    case "blockquote":
      return blocks(token.tokens ?? [], depth + 1).join("\n");
    case "list":
      return (token as Tokens.List).items.map((item) => blocks(item.tokens, depth + 1).filter(Boolean).join("\n")).join("\n");
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens, 0)).join(", ")).join("\n");
    }
    default:
      return "tokens" in token && token.tokens ? inline(token.tokens, 0) : inline([token], 0);
  }
}

function inline(tokens: readonly Token[], depth: number): string {
  if (depth > MAX_DEPTH) return "";
  return tokens.map((token) => {
    if (token.type === "br") return "\n";
    if (token.type === "html" || token.type === "checkbox") return "";
    if (token.type === "codespan" || token.type === "escape" || token.type === "math") return String(token.text);
    if ("tokens" in token && token.tokens?.length) return inline(token.tokens, depth + 1);
    return "text" in token ? decodeEntities(String(token.text)) : "";
  }).join("");
}

/** A text in pieces of at most so many characters, at the ends of sentences where that is possible. */
export function splitText(text: string, most: number): string[] {
  const pieces: string[] = [];
  let rest = text.trim();
  while (rest.length > most) {
    const head = rest.slice(0, most);
    const ends = [...head.matchAll(/\n|[.!?…]["'”’)]*\s|[。！？]/g)].at(-1);
    const space = head.lastIndexOf(" ");
    let at = ends ? ends.index + ends[0].length : space > 0 ? space : most;
    if (/[\ud800-\udbff]/.test(rest[at - 1]!) && at > 1) at -= 1; // surrogate pairs stay together
    pieces.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  return [...pieces, rest].filter(Boolean);
}
