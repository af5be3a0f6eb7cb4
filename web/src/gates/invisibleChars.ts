/** Invisible and lookalike characters: found, named and counted. Pure. */
// The terminal UI reads the same file.
import confusables from "../../../src/everturn/terminal/tui/gates/confusables.json";

export type InvisibleKind = "zero" | "bidi" | "tag" | "control" | "space" | "filler" | "private";

/** A piece of a text, in order. With a `kind` it is one character that is shown as its `code`. */
export interface TextPiece {
  readonly text: string;
  readonly at: number; // in UTF-16 units, as in the DOM
  readonly kind?: InvisibleKind;
  readonly code?: string;
}

// Characters without a glyph. A line feed and a tab are visible by their effect, a space by its width.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Co}\p{Cn}\p{Cs}\p{DI}\u2800\ufffc]/gu;
const VISIBLE_SPACES = new Set(["\n", "\t", " "]);
const EMOJI = /\p{Extended_Pictographic}|\p{Emoji_Modifier}/u;
const KEYCAP = /[0-9#*]/;

/** Split a text into pieces; joined they are the text. */
export function splitInvisible(text: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let from = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    const [char] = found;
    const at = found.index;
    if (VISIBLE_SPACES.has(char) || isInEmoji(text, at, char)) continue;
    if (at > from) pieces.push({ text: text.slice(from, at), at: from });
    pieces.push({ text: char, at, kind: kindOf(char), code: codePointLabel(char) });
    from = at + char.length;
  }
  if (from < text.length || !pieces.length) pieces.push({ text: text.slice(from), at: from });
  return pieces;
}

/** Number of invisible characters in a text. */
export function countInvisible(text: string): number {
  return splitInvisible(text).filter((piece) => piece.kind).length;
}

/** The text with invisible characters written out: for titles and labels, which have no markup. */
export function escapeInvisible(text: string): string {
  return splitInvisible(text).map((piece) => (piece.kind ? `⟨${piece.code}⟩` : piece.text)).join("");
}

export function codePointLabel(char: string): string {
  return `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** A joiner between two emoji or a variation selector after one is part of the emoji. */
function isInEmoji(text: string, index: number, char: string): boolean {
  if (char !== "\u200d" && char !== "\ufe0f") return false;
  const before = charBefore(text, index);
  if (char === "\ufe0f") return EMOJI.test(before) || KEYCAP.test(before);
  const after = String.fromCodePoint(text.codePointAt(index + 1) ?? 0);
  const base = before === "\ufe0f" ? charBefore(text, index - 1) : before;
  return EMOJI.test(base) && !KEYCAP.test(base) && EMOJI.test(after) && !KEYCAP.test(after);
}

function charBefore(text: string, index: number): string {
  const unit = text.charCodeAt(index - 1);
  return unit >= 0xdc00 && unit <= 0xdfff ? text.slice(index - 2, index) : text.slice(Math.max(0, index - 1), index);
}

function kindOf(char: string): InvisibleKind {
  const code = char.codePointAt(0)!;
  if (code >= 0xe0000 && code <= 0xe007f) return "tag";
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || [0x200e, 0x200f, 0x061c].includes(code)) return "bidi";
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(char)) return "control";
  if (/\p{Zs}/u.test(char)) return "space";
  if (/[\u115f\u1160\u3164\uffa0\u2800\ufffc\u17b4\u17b5]/.test(char)) return "filler";
  return /[\p{Co}\p{Cn}\p{Cs}]/u.test(char) && !/\p{DI}/u.test(char) ? "private" : "zero";
}

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** Whether right-to-left letters stand beside left-to-right text: a browser shows such a text in another order. */
export function isMixedDirection(text: string): boolean {
  return RIGHT_TO_LEFT.test(text) && text.split("\n").some((line) => RIGHT_TO_LEFT.test(line) && /[A-Za-z0-9$&|;<>/\\]/.test(line));
}

/** A word that may look like another one. */
export interface Lookalike {
  readonly word: string;
  readonly why: "mixed" | "foreign" | "styled";
  readonly scripts: readonly string[];
}

const SCRIPTS = confusables.scripts.map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")] as const);
const LATIN_LOOKALIKES = new RegExp(`^[${confusables.latin_lookalikes}]+$`, "u");
const STYLED = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f\u2460-\u24ff\u{1f110}-\u{1f189}]/u;

/** Words with mixed scripts, with lookalike letters only, or with styled letters; each once. */
export function findLookalikes(text: string): Lookalike[] {
  const found = new Map<string, Lookalike>();
  const isLatin = /[A-Za-z]{2}/.test(text);
  for (const [word] of text.matchAll(/[\p{L}\p{M}\p{N}\u2460-\u24ff]+/gu)) {
    if (found.has(word) || /^[\x00-\x7f]+$/.test(word)) continue;
    const scripts = SCRIPTS.filter(([, script]) => script.test(word)).map(([name]) => name);
    const isStyled = STYLED.test(word) && word.normalize("NFKC") !== word && /[A-Za-z0-9]/.test(word.normalize("NFKC"));
    if (scripts.length > 1) found.set(word, { word, why: "mixed", scripts });
    else if (isStyled) found.set(word, { word, why: "styled", scripts });
    else if (isLatin && scripts[0] !== "Latin" && LATIN_LOOKALIKES.test(word)) found.set(word, { word, why: "foreign", scripts });
  }
  return [...found.values()];
}
