/**
 * Draws code of a model as HTML, SVG or a diagram, in a frame without an origin; see `public/sandbox/preview.html`.
 * No script of the code runs. What the frame says is untrusted: a size, or a text of bounded length.
 */
import libraryUrl from "./mermaidLibrary?worker&url";

export type PreviewKind = "html" | "svg" | "mermaid";

export interface Preview {
  readonly height: number; // in CSS pixels, bounded
  readonly isReduced: boolean; // something was left out: scripts, or what would be fetched
}

export const FRAME = "/sandbox/preview.html";
export const MAX_HEIGHT = 4000;
const MIN_HEIGHT = 24;
const TIMEOUT = 12_000; // milliseconds in which a frame must have drawn
const MAX_REASON = 300; // characters

let library: Promise<string> | undefined;

/** Fetched once per page, and from the browser's cache after that. */
function loadLibrary(): Promise<string> {
  library ??= fetch(libraryUrl).then((response) => {
    if (!response.ok) throw new Error(String(response.status));
    return response.text();
  });
  library.catch(() => (library = undefined));
  return library;
}

export interface PreviewEvents {
  onDrawn(preview: Preview): void;
  /** `reason` is a text of the frame; "" if it did not answer in time. */
  onFailed(reason: string): void;
}

/** Draw into a frame that is in the document; returns what ends it. */
export function drawPreview(frame: HTMLIFrameElement, kind: PreviewKind, text: string, isDark: boolean, events: PreviewEvents): () => void {
  const { port1: port, port2: framePort } = new MessageChannel();
  let isOver = false;
  const end = () => {
    isOver = true;
    clearTimeout(timer);
    port.close();
  };
  const fail = (reason: string) => {
    if (isOver) return;
    end();
    events.onFailed(reason);
  };
  const timer = setTimeout(() => fail(""), TIMEOUT);
  port.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isOver) return;
    const { kind: said, height, isReduced, why } = (data ?? {}) as Record<string, unknown>;
    if (said === "ready") void send();
    else if (said === "failed") fail(typeof why === "string" ? why.slice(0, MAX_REASON) || "?" : "?");
    else if (said === "drawn" && typeof height === "number") {
      clearTimeout(timer);
      events.onDrawn({ height: Math.min(Math.max(Math.ceil(height) || 0, MIN_HEIGHT), MAX_HEIGHT), isReduced: isReduced === true });
    }
  };
  const send = async () => {
    try {
      const script = kind === "mermaid" ? await loadLibrary() : "";
      if (!isOver) port.postMessage({ kind, text, isDark, script });
    } catch {
      fail("");
    }
  };
  const begin = () => frame.contentWindow?.postMessage("draw", "*", [framePort]);
  frame.addEventListener("load", begin, { once: true });
  frame.src = FRAME;
  return () => {
    frame.removeEventListener("load", begin);
    end();
  };
}
