/** Server-sent events parser, by the rules of the HTML standard, for text in chunks of any size. */

/** One message of a stream; `id` is the cursor after it. */
export interface StreamMessage {
  readonly id: string;
  readonly data: string;
}

export class SseParser {
  private rest = ""; // an incomplete line
  private isAfterReturn = false; // the next newline belongs to the carriage return before it
  private id = "";
  private data: string | null = null;

  /** `onMessage` gets each message; once it returns true, nothing more is read. */
  constructor(private readonly onMessage: (message: StreamMessage) => boolean | void) {}

  /** Parse a chunk; true when the last message was in it. An incomplete message at the end of a stream is dropped. */
  feed(text: string): boolean {
    const hasReturn = this.isAfterReturn || text.includes("\r"); // rare
    let from = 0;
    if (this.isAfterReturn && text) {
      this.isAfterReturn = false;
      if (text[0] === "\n") from = 1;
    }
    for (;;) {
      const end = hasReturn ? endOfLine(text, from) : text.indexOf("\n", from);
      if (end < 0) break;
      // Only new text is scanned: a message of megabytes in small chunks costs no more than in one.
      const line = this.rest + text.slice(from, end);
      this.rest = "";
      from = end + 1;
      if (text[end] === "\r") {
        if (from === text.length) this.isAfterReturn = true;
        else if (text[from] === "\n") from += 1;
      }
      if (this.line(line)) return true;
    }
    if (from < text.length) this.rest += text.slice(from);
    return false;
  }

  private line(line: string): boolean {
    if (line === "") {
      const data = this.data;
      this.data = null;
      return data !== null && this.onMessage({ id: this.id, data }) === true;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") this.data = this.data === null ? value : `${this.data}\n${value}`;
    else if (field === "id" && !value.includes("\0")) this.id = value;
    return false;
  }
}

function endOfLine(text: string, from: number): number {
  const [lineFeed, carriageReturn] = [text.indexOf("\n", from), text.indexOf("\r", from)];
  return lineFeed < 0 ? carriageReturn : carriageReturn < 0 ? lineFeed : Math.min(lineFeed, carriageReturn);
}
