/** Markdown → tokens. `marked` is used for this and nothing else: no text of a model is ever made into markup. */
import { Lexer, Marked, type Token, type Tokens } from "marked";

export type { Token, Tokens };

/** A formula; `isDisplay`: in a line of its own. */
export interface Math extends Tokens.Generic {
  type: "math";
  text: string;
  isDisplay: boolean;
}

// Code binds closer than a formula, so none has a backtick in it.
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
    const at = src.search(/\$|\\[([]/);
    return at < 0 ? undefined : at;
  },
  tokenizer(src: string): Math | undefined {
    if (src[0] !== "$" && src[0] !== "\\") return undefined;
    for (const [number, pattern] of INLINE.entries()) {
      const found = pattern.exec(src.length > LONGEST_FORMULA ? src.slice(0, LONGEST_FORMULA) : src);
      if (found) return { type: "math", raw: found[0], text: found[1]!.trim(), isDisplay: number === 0 || number === 3 };
    }
    return undefined;
  },
};

const LONGEST_FORMULA = 2000;

/** Formulas between lines: from `$$` or `\[` to its end, with no empty line between. One that is open so far is text. */
const blockMath = {
  name: "mathBlock",
  level: "block" as const,
  // Only where one really begins: each place that is named here makes the reader look at all the rest again.
  start: (src: string) => {
    for (const { index } of src.matchAll(/\n {0,3}(?:\$\$|\\\[)/g)) if (formula(src.slice(index + 1))) return index + 1;
    return undefined;
  },
  tokenizer: formula,
};

function formula(src: string): Tokens.Generic | undefined {
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

const LONGEST_RUN = 10_000; // characters of a paragraph, a cell or an item
const MOST_MARKS = 1000; // in it, that may begin something: to find out what ends them is not linear
const MARKS = /[*_~`$[<@\\&]/g;

/** A reader that leaves a run of text as it is where to read it would take too long. */
class Reader extends Lexer {
  override inlineTokens(src: string, into: Token[] = []): Token[] {
    if (src.length <= LONGEST_RUN && (src.length <= MOST_MARKS || (src.match(MARKS)?.length ?? 0) <= MOST_MARKS)) return super.inlineTokens(src, into);
    into.push({ type: "text", raw: src, text: src, escaped: true });
    return into;
  }
}

/** The blocks of a text, with nothing inside of them read yet. */
export function outline(text: string): Token[] {
  return new Lexer(marked.defaults).blockTokens(text, []);
}

/** All tokens of a text. `definitions` are those of links, written elsewhere in the same text. */
export function tokens(text: string, definitions = ""): Token[] {
  const all = new Reader(marked.defaults).lex(definitions ? `${definitions}\n\n${text}` : text);
  return all.filter((token) => token.type !== "space" && token.type !== "def");
}
