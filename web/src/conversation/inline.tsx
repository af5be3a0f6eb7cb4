/** Tokens inside of a line → nodes. Text becomes text nodes; of links only those that lead somewhere honest become links. */
import type { ComponentChild } from "preact";
import { Icon } from "../ui/kit";
import { address, hostOf, pretends } from "./links";
import type { Token } from "./lexing";
import { Formula } from "./math";
import { exposed, unescaped, visible } from "./plain";

const DEEPEST = 16; // emphasis in emphasis

export function inline(tokens: readonly Token[] = [], depth = 0): ComponentChild[] {
  return tokens.map((token) => one(token, depth));
}

function one(token: Token, depth: number): ComponentChild {
  if (depth > DEEPEST) return visible(token.raw);
  switch (token.type) {
    case "text":
      return token.tokens ? inline(token.tokens, depth) : visible(unescaped(token.text));
    case "escape":
      return visible(token.text);
    case "strong":
      return <strong>{inline(token.tokens, depth + 1)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth + 1)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth + 1)}</del>;
    case "codespan":
      return <code>{exposed(token.text)}</code>;
    case "br":
      return <br />;
    case "html":
      return /^<br\s*\/?>$/i.test(token.raw) ? <br /> : visible(token.raw);
    case "link":
      return <Link href={token.href} text={shown(token)}>{inline(token.tokens, depth + 1)}</Link>;
    case "image":
      return <Picture href={token.href} alt={token.text} />;
    case "math":
      return <Formula text={token.text} isDisplay={token.isDisplay} />;
    case "checkbox":
      return null; // the item draws it
    default:
      return visible(token.raw);
  }
}

/** What a person reads of a token: a host that is written in pieces is a host. */
function shown(token: Token): string {
  const inside = "tokens" in token ? token.tokens : undefined;
  if (inside?.length) return inside.map(shown).join("");
  return token.type === "br" ? " " : unescaped("text" in token ? String(token.text) : token.raw);
}

const REL = "noopener noreferrer nofollow";

function Link({ href, text, children }: { href: string; text: string; children: ComponentChild }) {
  const url = address(unescaped(href));
  if (!url) return <>{children}</>;
  const isBare = text === url.href && !url.username; // the address itself, in which a file may look like a host
  return (
    <>
      <a href={url.href} rel={REL} target="_blank" title={url.href}>{children}</a>
      {!isBare && pretends(text, url) && <span class="host"> ({hostOf(url)})</span>}
    </>
  );
}

/** A picture from elsewhere is not fetched: the asking alone would tell somebody something. */
function Picture({ href, alt }: { href: string; alt: string }) {
  const url = address(unescaped(href));
  const text = visible(unescaped(alt)) || "…";
  const inside = (
    <>
      <Icon name="eye" />
      <span class="alt">{text}</span>
      {url && <span class="host">{hostOf(url)}</span>}
    </>
  );
  if (!url || url.protocol === "mailto:") return <span class="picture" title={visible(href).slice(0, 200)}>{inside}</span>;
  return <a class="picture" href={url.href} rel={REL} target="_blank" title={url.href}>{inside}</a>;
}
