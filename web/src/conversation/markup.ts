/** Parses the HTML of highlight.js and KaTeX to nodes: spans, MathML and entities; anything else becomes text or is dropped. */
import { h, type ComponentChild, type VNode } from "preact";
import { decodeEntities } from "./textEscapes";

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
const TOKEN = /<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>|([^<]+|<)/g;

const MAX_DEPTH = 200; // nesting depth; rendering is recursive

/** Throws when the nesting is too deep. */
export function parseMarkup(markup: string): ComponentChild[] {
  const root: ComponentChild[] = [];
  const open: { tag: string; props: Record<string, string>; children: ComponentChild[] }[] = [];
  const into = () => open.at(-1)?.children ?? root;
  const close = () => {
    const { tag, props, children } = open.pop()!;
    into().push(TAGS.has(tag) ? h(tag, props, ...children) : children);
  };
  for (const [, end, tag = "", attributes = "", empty, text] of markup.matchAll(TOKEN)) {
    if (text !== undefined) into().push(decodeEntities(text));
    else if (!end) {
      open.push({ tag, props: allowedAttributes(attributes), children: [] });
      if (open.length > MAX_DEPTH) throw new RangeError("too deep");
      if (empty) close();
    } else if (open.length && open.at(-1)!.tag === tag) close();
  }
  while (open.length) close();
  return root;
}

function allowedAttributes(attributes: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name, value] of attributes.matchAll(/([\w:-]+)="([^"]*)"/g)) if (ATTRIBUTES.has(name!)) found[name!] = decodeEntities(value!);
  return found;
}

export type { VNode };
