/** Link safety: which addresses may become links, and whether the text of a link names another host. */

/** The URL, if it may become a link: http, https, mailto. */
export function safeUrl(href: string): URL | null {
  try {
    const url = new URL(href.trim());
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null; // also one without a host: it would lead into this page
  }
}

/** The host to show for a URL, as the browser reads it (`xn--…` for lookalike letters). */
export function hostOf(url: URL): string {
  return url.protocol === "mailto:" ? url.pathname.split("@").at(-1)!.slice(0, 100) : url.host;
}

const HOST_PATTERN = /(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}/u;

/** Whether a text names a host, anywhere in it, and the link leads to another one. */
export function isDeceptive(text: string, url: URL): boolean {
  const plain = text.normalize("NFKC").replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "");
  const bare = (host: string) => host.toLowerCase().replace(/^www\./, "");
  // Word by word, and no more of one than a host can have: the pattern is not linear.
  return plain.split(/[^\p{L}\p{N}.-]+/u).some((word) => {
    const named = HOST_PATTERN.exec(word.slice(-253))?.[0];
    return named !== undefined && bare(named) !== bare(hostOf(url)) && bare(named) !== bare(url.hostname);
  });
}
