/** A text that grows → its blocks, of which all but the last are finished and never read again.
 *
 * Wherever the text is cut into pieces, the same blocks come out: only whole lines decide that a block is over, and the one before
 * the last line stays open, since that line may still change it (a title is underlined, a list goes on).
 */
import { outline } from "./lexing";

export interface Block {
  readonly source: string;
  /** Drawn as it was written: too long to be read as markdown. */
  readonly isPlain: boolean;
}

const LONGEST = 30_000; // characters of a block; a reader of markdown is not linear in all of them
const LONGEST_LINE = 8000;
const DEEPEST = 24; // quotes and lists in each other
const DEEP = new RegExp(`^(?:[ \\t]*(?:>|[-*+](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${DEEPEST},}`, "m");
const FENCE = /^ {0,3}(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/;

export class Blocks {
  /** Those that are over. The array is replaced when there are more. */
  finished: readonly Block[] = [];
  /** What may still change. */
  tail = "";
  /** Definitions of links, wherever in the text they stand. */
  definitions = "";
  /** Too deep for markdown: the whole text is drawn as it was written. */
  isPlain = false;
  private seen = "";
  private fence = ""; // that of an open block of code at the beginning of the tail
  private looked = 0; // how much of the tail was searched for the end of it
  private patience = LONGEST; // a tail longer than this is read again when it has doubled

  /** The whole text as it is now. */
  update(text: string): void {
    if (!text.startsWith(this.seen)) this.reset();
    // The second half of a line's end may be in the next piece.
    const until = text.endsWith("\r") ? text.length - 1 : text.length;
    if (until <= this.seen.length) return;
    const more = text.slice(this.seen.length, until).replace(/\r\n?/g, "\n");
    this.seen = text.slice(0, until);
    this.append(more);
  }

  /** Blocks as they stand, the open one with them. */
  get all(): readonly Block[] {
    return this.tail.trim() ? [...this.finished, block(this.tail)] : this.finished;
  }

  /** Whether the last block is code whose end has not come. */
  get isOpenCode(): boolean {
    return this.fence !== "";
  }

  private reset(): void {
    Object.assign(this, { finished: [], tail: "", definitions: "", isPlain: false, seen: "", fence: "", looked: 0, patience: LONGEST });
  }

  private append(more: string): void {
    const lineStart = this.tail.lastIndexOf("\n") + 1;
    this.tail += more;
    if (this.isPlain) return;
    if (this.fence && !this.closes()) return;
    if (DEEP.test(this.tail.slice(lineStart)) && isDeep(this.tail)) {
      this.isPlain = true;
      return;
    }
    if (!more.includes("\n") || this.tail.length > this.patience) {
      if (this.tail.length <= this.patience) return this.openFence();
      this.patience *= 2;
    }
    this.freeze();
    this.openFence();
  }

  /** Whether the fence of the open code has come, among the lines that were not searched yet. */
  private closes(): boolean {
    const end = this.tail.lastIndexOf("\n") + 1;
    const lines = this.tail.slice(this.looked, end);
    const found = new RegExp(`^ {0,3}${this.fence}+[ \\t]*$`, "m").test(lines);
    this.looked = end;
    if (found) this.fence = "";
    return found;
  }

  /** All blocks but the last are over. */
  private freeze(): void {
    const whole = this.tail.slice(0, this.tail.lastIndexOf("\n") + 1);
    const found = outline(whole);
    const last = found.findLastIndex((token) => token.type !== "space");
    const over: Block[] = [];
    let at = 0;
    for (const token of found.slice(0, Math.max(last, 0))) {
      // A reader that joins what it read leaves no way to know where a block ended.
      if (!whole.startsWith(token.raw, at)) break;
      at += token.raw.length;
      if (token.type === "def") this.definitions += `${token.raw.trimEnd()}\n`;
      else if (token.type !== "space") over.push(block(token.raw));
    }
    if (!at) return;
    this.tail = this.tail.slice(at);
    this.patience = LONGEST;
    if (over.length) this.finished = [...this.finished, ...over];
  }

  private openFence(): void {
    const opened = FENCE.exec(this.tail);
    if (!opened || !this.tail.includes("\n")) return;
    this.fence = opened[1]!;
    this.looked = this.tail.indexOf("\n") + 1;
    if (this.closes()) this.fence = "";
  }
}

/** Whether a line outside of code has too many quotes and lists in each other. */
function isDeep(text: string): boolean {
  let fence: RegExp | null = null;
  for (const line of text.split("\n")) {
    const opened = FENCE.exec(line);
    if (fence) fence = fence.test(line) ? null : fence;
    else if (opened) fence = new RegExp(`^ {0,3}${opened[1]}+[ \\t]*$`);
    else if (DEEP.test(line)) return true;
  }
  return false;
}

function block(source: string): Block {
  const isLong = source.length > LONGEST || (source.length > LONGEST_LINE && source.split("\n").some((line) => line.length > LONGEST_LINE));
  return { source, isPlain: isLong && !FENCE.test(source) };
}

/** A block of code at the beginning of a text: its language, and what stands in it so far. */
export function openCode(source: string): { language: string; text: string } {
  const [first = "", ...rest] = source.split("\n");
  return { language: first.replace(FENCE, "").trim(), text: rest.join("\n") };
}
