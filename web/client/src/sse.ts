/** Text of an event stream → its messages, by the rules of the HTML standard, in whatever pieces the text comes. */

/** One message of a stream; `id` is the cursor after it. */
export interface StreamMessage {
  readonly id: string;
  readonly data: string;
}

export class Parser {
  private rest = ""; // of a line that is not over
  private isAfterReturn = false; // a newline now belongs to the return before it
  private id = "";
  private data: string | null = null;

  /** `take` gets each message; once it answers true nothing more is read. */
  constructor(private readonly take: (message: StreamMessage) => boolean | void) {}

  /** Read on; true when the last message was among it. What is cut off in the middle of a message is dropped with this. */
  feed(text: string): boolean {
    const hasReturn = this.isAfterReturn || text.includes("\r"); // hardly ever
    let from = 0;
    if (this.isAfterReturn && text) {
      this.isAfterReturn = false;
      if (text[0] === "\n") from = 1;
    }
    for (;;) {
      const at = hasReturn ? endOfLine(text, from) : text.indexOf("\n", from);
      if (at < 0) break;
      // Only new text is looked through: a message of megabytes that comes in crumbs costs no more than one in a lump.
      const line = this.rest + text.slice(from, at);
      this.rest = "";
      from = at + 1;
      if (text[at] === "\r") {
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
      return data !== null && this.take({ id: this.id, data }) === true;
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
  const [one, other] = [text.indexOf("\n", from), text.indexOf("\r", from)];
  return one < 0 ? other : other < 0 ? one : Math.min(one, other);
}
