/** What highlight.js and KaTeX write → nodes. They write spans, MathML and entities; whatever else there is becomes text, or nothing. */
import { h, type ComponentChild, type VNode } from "preact";
import { unescaped } from "./plain";

const TAGS = new Set(
  (
    "span math semantics annotation mrow mi mo mn ms mtext mspace msup msub msubsup mfrac msqrt mroot mstyle mtable mtr mtd mlabeledtr " +
    "munder mover munderover mpadded mphantom menclose merror mmultiscripts mprescripts none"
  ).split(" "),
);
const ATTRIBUTES = new Set(
  (
    "class display mathvariant stretchy fence separator lspace rspace minsize maxsize symmetric form accent accentunder linethickness " +
    "columnalign columnspacing rowspacing columnlines rowlines displaystyle scriptlevel width height depth voffset notation movablelimits " +
    "largeop encoding mathcolor mathbackground"
  ).split(" "),
);
const PIECE = /<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>|([^<]+|<)/g;

const DEEPEST = 200; // one in another; who draws them does it by recursion

/** Raises: they are too deep in each other. */
export function nodes(markup: string): ComponentChild[] {
  const root: ComponentChild[] = [];
  const open: { tag: string; props: Record<string, string>; children: ComponentChild[] }[] = [];
  const into = () => open.at(-1)?.children ?? root;
  const close = () => {
    const { tag, props, children } = open.pop()!;
    into().push(TAGS.has(tag) ? h(tag, props, ...children) : children);
  };
  for (const [, end, tag = "", attributes = "", empty, text] of markup.matchAll(PIECE)) {
    if (text !== undefined) into().push(unescaped(text));
    else if (!end) {
      open.push({ tag, props: allowed(attributes), children: [] });
      if (open.length > DEEPEST) throw new RangeError("too deep");
      if (empty) close();
    } else if (open.length && open.at(-1)!.tag === tag) close();
  }
  while (open.length) close();
  return root;
}

function allowed(attributes: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name, value] of attributes.matchAll(/([\w:-]+)="([^"]*)"/g)) if (ATTRIBUTES.has(name!)) found[name!] = unescaped(value!);
  return found;
}

export type { VNode };
