/** Markdown blocks of a streaming text: all but the last are complete and never lexed again.
 *
 * The same blocks come out however the text is chunked: only whole lines decide that a block is complete, and the one before
 * the last line stays open, since that line may still change it (a setext heading, a list that continues).
 */
import { lexBlocks } from "./lexer";

export interface Block {
  readonly source: string;
  /** Shown as plain text: too long for markdown. */
  readonly isPlain: boolean;
}

const MAX_BLOCK = 30_000; // characters of a block; the lexer is not linear in all of them
const MAX_LINE = 8000;
const MAX_DEPTH = 24; // nested quotes and lists
const DEEP = new RegExp(`^(?:[ \\t]*(?:>|[-*+](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${MAX_DEPTH},}`, "m");
const FENCE = /^ {0,3}(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/;

export class Blocks {
  /** Complete blocks. The array is replaced when there are more. */
  finished: readonly Block[] = [];
  /** Text that may still change. */
  tail = "";
  /** Link reference definitions, wherever in the text they are. */
  definitions = "";
  /** Nested too deeply for markdown: the whole text is shown as plain text. */
  isPlain = false;
  private seen = "";
  private fence = ""; // the fence of an open code block at the beginning of the tail
  private searched = 0; // how much of the tail was searched for the closing fence
  private lexLimit = MAX_BLOCK; // a tail longer than this is lexed again when it has doubled

  /** Update with the whole text so far. */
  update(text: string): void {
    if (!text.startsWith(this.seen)) this.reset();
    // The second half of a CRLF may be in the next chunk.
    const until = text.endsWith("\r") ? text.length - 1 : text.length;
    if (until <= this.seen.length) return;
    const more = text.slice(this.seen.length, until).replace(/\r\n?/g, "\n");
    this.seen = text.slice(0, until);
    this.append(more);
  }

  /** All blocks, including the open one. */
  get all(): readonly Block[] {
    return this.tail.trim() ? [...this.finished, makeBlock(this.tail)] : this.finished;
  }

  /** Whether the last block is an unclosed code block. */
  get isOpenCode(): boolean {
    return this.fence !== "";
  }

  private reset(): void {
    Object.assign(this, { finished: [], tail: "", definitions: "", isPlain: false, seen: "", fence: "", looked: 0, patience: MAX_BLOCK });
  }

  private append(more: string): void {
    const lineStart = this.tail.lastIndexOf("\n") + 1;
    this.tail += more;
    if (this.isPlain) return;
    if (this.fence && !this.closesFence()) return;
    if (DEEP.test(this.tail.slice(lineStart)) && isDeep(this.tail)) {
      this.isPlain = true;
      return;
    }
    if (!more.includes("\n") || this.tail.length > this.lexLimit) {
      if (this.tail.length <= this.lexLimit) return this.openFence();
      this.lexLimit *= 2;
    }
    this.freeze();
    this.openFence();
  }

  /** Whether the open code block is closed, in the lines that were not searched yet. */
  private closesFence(): boolean {
    const end = this.tail.lastIndexOf("\n") + 1;
    const lines = this.tail.slice(this.searched, end);
    const found = new RegExp(`^ {0,3}${this.fence}+[ \\t]*$`, "m").test(lines);
    this.searched = end;
    if (found) this.fence = "";
    return found;
  }

  /** Move all blocks but the last to the complete ones. */
  private freeze(): void {
    const whole = this.tail.slice(0, this.tail.lastIndexOf("\n") + 1);
    const found = lexBlocks(whole);
    const last = found.findLastIndex((token) => token.type !== "space");
    const complete: Block[] = [];
    let offset = 0;
    for (const token of found.slice(0, Math.max(last, 0))) {
      // If the lexer merged tokens, the end of a block is unknown.
      if (!whole.startsWith(token.raw, offset)) break;
      offset += token.raw.length;
      if (token.type === "def") this.definitions += `${token.raw.trimEnd()}\n`;
      else if (token.type !== "space") complete.push(makeBlock(token.raw));
    }
    if (!offset) return;
    this.tail = this.tail.slice(offset);
    this.lexLimit = MAX_BLOCK;
    if (complete.length) this.finished = [...this.finished, ...complete];
  }

  private openFence(): void {
    const opened = FENCE.exec(this.tail);
    if (!opened || !this.tail.includes("\n")) return;
    this.fence = opened[1]!;
    this.searched = this.tail.indexOf("\n") + 1;
    if (this.closesFence()) this.fence = "";
  }
}

/** Whether a line outside of code nests too many quotes and lists. */
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

function makeBlock(source: string): Block {
  const isLong = source.length > MAX_BLOCK || (source.length > MAX_LINE && source.split("\n").some((line) => line.length > MAX_LINE));
  return { source, isPlain: isLong && !FENCE.test(source) };
}

/** An open code block: its language, and its text so far. */
export function openCode(source: string): { language: string; text: string } {
  const [first = "", ...rest] = source.split("\n");
  return { language: first.replace(FENCE, "").trim(), text: rest.join("\n") };
}
