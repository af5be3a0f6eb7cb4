/** Markdown lexer. `marked` is used for tokens and nothing else: no text of a model ever becomes HTML. */
import { Lexer, Marked, type Token, type Tokens } from "marked";

export type { Token, Tokens };

/** A formula; `isDisplay`: on a line of its own. */
export interface MathToken extends Tokens.Generic {
  type: "math";
  text: string;
  isDisplay: boolean;
}

// Code binds closer than a formula, so a formula has no backtick.
const INLINE = [
  /^\$\$(?!\$)((?:[^$`\\\n]|\\[^\n]|\n(?!\s*\n))+?)\$\$(?!\$)/, // $$…$$
  /^\$(?![\s$])((?:[^$`\\\n]|\\[^\n])*?(?:[^\s$`\\]|\\[^\s]))\$(?![\d$])/, // $…$, and not "$5 and $6"
  /^\\\(((?:[^`\\\n]|\\(?!\))[^\n])+?)\\\)/, // \(…\)
  /^\\\[((?:[^`\\]|\\(?!\]))+?)\\\]/, // \[…\]
];

const inlineMath = {
  name: "math",
  level: "inline" as const,
  start: (src: string) => {
    const start = src.search(/\$|\\[([]/);
    return start < 0 ? undefined : start;
  },
  tokenizer(src: string): MathToken | undefined {
    if (src[0] !== "$" && src[0] !== "\\") return undefined;
    for (const [number, pattern] of INLINE.entries()) {
      const found = pattern.exec(src.length > MAX_FORMULA ? src.slice(0, MAX_FORMULA) : src);
      if (found) return { type: "math", raw: found[0], text: found[1]!.trim(), isDisplay: number === 0 || number === 3 };
    }
    return undefined;
  },
};

const MAX_FORMULA = 2000;

/** Block formulas: from `$$` or `\[` to its end, with no empty line between. One that is still open is text. */
const blockMath = {
  name: "mathBlock",
  level: "block" as const,
  // Only where one really starts: each position returned here makes the lexer scan the rest again.
  start: (src: string) => {
    for (const { index } of src.matchAll(/\n {0,3}(?:\$\$|\\\[)/g)) if (blockFormula(src.slice(index + 1))) return index + 1;
    return undefined;
  },
  tokenizer: blockFormula,
};

function blockFormula(src: string): Tokens.Generic | undefined {
  const opened = /^ {0,3}(\$\$|\\\[)/.exec(src);
  if (!opened) return undefined;
  const from = opened[0].length;
  const close = src.indexOf(opened[1] === "$$" ? "$$" : "\\]", from);
  if (close < 0 || /\n[ \t]*\n/.test(src.slice(0, close))) {
    if (/^[ \t]*[^\s]/.test(src.slice(from))) return undefined; // on the same line
    const empty = src.search(/\n[ \t]*(?:\n|$)/);
    const body = empty < 0 ? src : src.slice(0, empty + 1);
    return { type: "html", raw: body, text: body, block: true };
  }
  const rest = /^[ \t]*(?:\n|$)/.exec(src.slice(close + 2));
  if (!rest) return undefined;
  return { type: "math", raw: src.slice(0, close + 2 + rest[0].length), text: src.slice(from, close).trim(), isDisplay: true };
}

const marked = new Marked({ gfm: true, extensions: [inlineMath, blockMath] });

const MAX_RUN = 10_000; // characters of a paragraph, a cell or an item
const MAX_MARKS = 1000; // delimiters in it; finding what closes them is not linear
const MARKS = /[*_~`$[<@\\&]/g;

/** A lexer that leaves a run of text as it is where lexing it would take too long. */
class BoundedLexer extends Lexer {
  override inlineTokens(src: string, into: Token[] = []): Token[] {
    if (src.length <= MAX_RUN && (src.length <= MAX_MARKS || (src.match(MARKS)?.length ?? 0) <= MAX_MARKS)) return super.inlineTokens(src, into);
    into.push({ type: "text", raw: src, text: src, escaped: true });
    return into;
  }
}

/** The blocks of a text, without their inline tokens. */
export function lexBlocks(text: string): Token[] {
  return new Lexer(marked.defaults).blockTokens(text, []);
}

/** All tokens of a text. `definitions` are link reference definitions from elsewhere in the same text. */
export function lex(text: string, definitions = ""): Token[] {
  const all = new BoundedLexer(marked.defaults).lex(definitions ? `${definitions}\n\n${text}` : text);
  return all.filter((token) => token.type !== "space" && token.type !== "def");
}
