/** Inline markdown tokens to nodes. Text becomes text nodes; only links to safe addresses become links. */
import type { ComponentChild } from "preact";
import { Icon } from "../ui/components";
import { safeUrl, hostOf, isDeceptive } from "./links";
import type { Token } from "./lexer";
import { Formula } from "./math";
import { showInvisible, decodeEntities, showControls } from "./textEscapes";

const MAX_DEPTH = 16; // nested emphasis

export function renderInline(tokens: readonly Token[] = [], depth = 0): ComponentChild[] {
  return tokens.map((token) => renderToken(token, depth));
}

function renderToken(token: Token, depth: number): ComponentChild {
  if (depth > MAX_DEPTH) return showControls(token.raw);
  switch (token.type) {
    case "text":
      return token.tokens ? renderInline(token.tokens, depth) : showControls(decodeEntities(token.text));
    case "escape":
      return showControls(token.text);
    case "strong":
      return <strong>{renderInline(token.tokens, depth + 1)}</strong>;
    case "em":
      return <em>{renderInline(token.tokens, depth + 1)}</em>;
    case "del":
      return <del>{renderInline(token.tokens, depth + 1)}</del>;
    case "codespan":
      return <code>{showInvisible(token.text)}</code>;
    case "br":
      return <br />;
    case "html":
      return /^<br\s*\/?>$/i.test(token.raw) ? <br /> : showControls(token.raw);
    case "link":
      return <Link href={token.href} text={visibleLabel(token)}>{renderInline(token.tokens, depth + 1)}</Link>;
    case "image":
      return <ImageLink href={token.href} alt={token.text} />;
    case "math":
      return <Formula text={token.text} isDisplay={token.isDisplay} />;
    case "checkbox":
      return null; // the list item draws it
    default:
      return showControls(token.raw);
  }
}

/** The visible text of a token: a host that is split over several tokens is still a host. */
function visibleLabel(token: Token): string {
  const inside = "tokens" in token ? token.tokens : undefined;
  if (inside?.length) return inside.map(visibleLabel).join("");
  return token.type === "br" ? " " : decodeEntities("text" in token ? String(token.text) : token.raw);
}

const REL = "noopener noreferrer nofollow";

function Link({ href, text, children }: { href: string; text: string; children: ComponentChild }) {
  const url = safeUrl(decodeEntities(href));
  if (!url) return <>{children}</>;
  const isBare = text === url.href && !url.username; // the address itself, in which a file name may look like a host
  return (
    <>
      <a href={url.href} rel={REL} target="_blank" title={url.href}>{children}</a>
      {!isBare && isDeceptive(text, url) && <span class="host"> ({hostOf(url)})</span>}
    </>
  );
}

/** A remote image is not fetched: the request alone would leak information. */
function ImageLink({ href, alt }: { href: string; alt: string }) {
  const url = safeUrl(decodeEntities(href));
  const text = showControls(decodeEntities(alt)) || "…";
  const inside = (
    <>
      <Icon name="eye" />
      <span class="alt">{text}</span>
      {url && <span class="host">{hostOf(url)}</span>}
    </>
  );
  if (!url || url.protocol === "mailto:") return <span class="picture" title={showControls(href).slice(0, 200)}>{inside}</span>;
  return <a class="picture" href={url.href} rel={REL} target="_blank" title={url.href}>{inside}</a>;
}
