/** Characters that a person would not see, or would take for others: found, named and counted. Pure. */

export type HiddenKind = "zero" | "bidi" | "tag" | "control" | "space" | "filler" | "private";

/** A piece of a text, in order. With a `kind` it is one character that is to be written out as its `code`. */
export interface Piece {
  readonly text: string;
  readonly at: number; // in UTF-16 units, as the DOM counts
  readonly kind?: HiddenKind;
  readonly code?: string;
}

// Whatever has no glyph of its own. A line feed and a tab are seen by what they do; a plain blank by its width.
const SUSPECT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Co}\p{Cn}\p{Cs}\p{DI}\u2800\ufffc]/gu;
const SEEN = new Set(["\n", "\t", " "]);
const PICTURE = /\p{Extended_Pictographic}|\p{Emoji_Modifier}/u;
const KEYCAP = /[0-9#*]/;

/** A text in pieces; put together they are the text. */
export function reveal(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(SUSPECT)) {
    const [char] = found;
    const at = found.index;
    if (SEEN.has(char) || isInPicture(text, at, char)) continue;
    if (at > from) pieces.push({ text: text.slice(from, at), at: from });
    pieces.push({ text: char, at, kind: kindOf(char), code: codeOf(char) });
    from = at + char.length;
  }
  if (from < text.length || !pieces.length) pieces.push({ text: text.slice(from), at: from });
  return pieces;
}

/** How many characters of a text nobody would see. */
export function countHidden(text: string): number {
  return reveal(text).filter((piece) => piece.kind).length;
}

/** One line with everything written out: for titles and labels, where no marks can be drawn. */
export function plain(text: string): string {
  return reveal(text).map((piece) => (piece.kind ? `⟨${piece.code}⟩` : piece.text)).join("");
}

export function codeOf(char: string): string {
  return `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** What holds a picture together is seen by the picture: one joiner between two, one selector behind one. */
function isInPicture(text: string, at: number, char: string): boolean {
  if (char !== "\u200d" && char !== "\ufe0f") return false;
  const before = lastChar(text, at);
  if (char === "\ufe0f") return PICTURE.test(before) || KEYCAP.test(before);
  const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
  const base = before === "\ufe0f" ? lastChar(text, at - 1) : before;
  return PICTURE.test(base) && !KEYCAP.test(base) && PICTURE.test(after) && !KEYCAP.test(after);
}

function lastChar(text: string, at: number): string {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xdc00 && unit <= 0xdfff ? text.slice(at - 2, at) : text.slice(Math.max(0, at - 1), at);
}

function kindOf(char: string): HiddenKind {
  const code = char.codePointAt(0)!;
  if (code >= 0xe0000 && code <= 0xe007f) return "tag";
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || [0x200e, 0x200f, 0x061c].includes(code)) return "bidi";
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(char)) return "control";
  if (/\p{Zs}/u.test(char)) return "space";
  if (/[\u115f\u1160\u3164\uffa0\u2800\ufffc\u17b4\u17b5]/.test(char)) return "filler";
  return /[\p{Co}\p{Cn}\p{Cs}]/u.test(char) && !/\p{DI}/u.test(char) ? "private" : "zero";
}

const LEFTWARD = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** Whether letters that run from right to left stand beside what does not: a browser shows such a text in another order. */
export function isMixedWay(text: string): boolean {
  return LEFTWARD.test(text) && text.split("\n").some((line) => LEFTWARD.test(line) && /[A-Za-z0-9$&|;<>/\\]/.test(line));
}

/** A word that may look like another one. */
export interface Lookalike {
  readonly word: string;
  readonly why: "mixed" | "foreign" | "styled";
  readonly scripts: readonly string[];
}

const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ["Latin", /\p{Script=Latin}/u], ["Cyrillic", /\p{Script=Cyrillic}/u], ["Greek", /\p{Script=Greek}/u], ["Armenian", /\p{Script=Armenian}/u],
  ["Cherokee", /\p{Script=Cherokee}/u], ["Coptic", /\p{Script=Coptic}/u], ["Lisu", /\p{Script=Lisu}/u], ["Hebrew", /\p{Script=Hebrew}/u],
  ["Arabic", /\p{Script=Arabic}/u], ["Georgian", /\p{Script=Georgian}/u],
];
// Letters of other alphabets that are drawn like those of ours.
const TWINS = /^[асеорхуіјѕһԁԛԝӏкмтвнгАВЕЅІЈКМНОРСТУХԌԚԜᴀοανικρυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհցՕᎪᏴᏟᎠᎬᎻᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ]+$/u;
const STYLED = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f\u2460-\u24ff\u{1f110}-\u{1f189}]/u;

/** Words with letters of several alphabets, of one that looks like ours, or in disguise; each once. */
export function lookalikes(text: string): Lookalike[] {
  const found = new Map<string, Lookalike>();
  const isLatin = /[A-Za-z]{2}/.test(text);
  for (const [word] of text.matchAll(/[\p{L}\p{M}\p{N}\u2460-\u24ff]+/gu)) {
    if (found.has(word) || /^[\x00-\x7f]+$/.test(word)) continue;
    const scripts = SCRIPTS.filter(([, script]) => script.test(word)).map(([name]) => name);
    const isStyled = STYLED.test(word) && word.normalize("NFKC") !== word && /[A-Za-z0-9]/.test(word.normalize("NFKC"));
    if (scripts.length > 1) found.set(word, { word, why: "mixed", scripts });
    else if (isStyled) found.set(word, { word, why: "styled", scripts });
    else if (isLatin && scripts[0] !== "Latin" && TWINS.test(word)) found.set(word, { word, why: "foreign", scripts });
  }
  return [...found.values()];
}
