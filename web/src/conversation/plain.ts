/** Text as it may be shown: what a terminal would obey is made visible, what a page would read as a character is read. */

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Control characters as their pictures, so that an escape sequence is seen and does nothing. */
export function visible(text: string): string {
  CONTROLS.lastIndex = 0;
  if (!CONTROLS.test(text)) return text;
  return text.replace(CONTROLS, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd";
  });
}

const UNSEEN = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Code as it is: whoever copies it takes with it what turns text around, or is not seen at all. */
export function exposed(text: string): string {
  return visible(text).replace(UNSEEN, (one) => `⟨U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const NAMED: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–",
  lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•", middot: "·", times: "×", divide: "÷", plusmn: "±",
  deg: "°", euro: "€", pound: "£", yen: "¥", sect: "§", larr: "←", rarr: "→", uarr: "↑", darr: "↓", harr: "↔", le: "≤", ge: "≥", ne: "≠",
  infin: "∞", micro: "µ", pi: "π", alpha: "α", beta: "β", gamma: "γ", delta: "δ", lambda: "λ", sigma: "σ", omega: "ω", ensp: "\u2002",
  emsp: "\u2003", thinsp: "\u2009", zwj: "\u200d", zwnj: "\u200c", shy: "\u00ad",
};

/** `&amp;` and its like, as markdown writes them. One that is not known stays as it is written. */
export function unescaped(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(NAMED, name) ? NAMED[name]! : whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? "\ufffd" : String.fromCodePoint(code);
  });
}
