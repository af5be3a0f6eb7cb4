/** Preview of a code block: the frame that draws it, mounted while it is near the visible part of the page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useStore } from "../app/store";
import { settings } from "../app/settings";
import { showControls } from "../conversation/textEscapes";
import { Spinner } from "../ui/components";
import type { PreviewEvents, PreviewKind } from "./drawPreview";
import "./preview.css";
import { useTexts } from "../locales/preview.gen";

type State = { status: "drawing" } | { status: "drawn"; isReduced: boolean } | { status: "failed"; reason: string };

export function Preview({ kind, text, onFailed }: { kind: PreviewKind; text: string; onFailed?: () => void }) {
  const t = useTexts();
  const [state, setState] = useState<State>({ status: "drawing" });
  const [height, setHeight] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLIFrameElement>(null);
  const isDark = useIsDark() && kind === "mermaid"; // HTML expects a white page
  const isNear = useIsNear(place);
  useEffect(() => {
    if (!isNear || !frame.current) return;
    setState({ status: "drawing" });
    const events: PreviewEvents = {
      onDrawn: (drawn) => {
        setHeight(drawn.height);
        setState({ status: "drawn", isReduced: drawn.isReduced });
      },
      onFailed: (reason) => {
        setState({ status: "failed", reason });
        onFailed?.();
      },
    };
    let end: (() => void) | null = () => {};
    void import("./drawPreview").then(
      ({ drawPreview }) => end && frame.current && (end = drawPreview(frame.current, kind, text, isDark, events)),
      () => end && events.onFailed(""),
    );
    return () => {
      end?.();
      end = null;
    };
  }, [isNear, kind, text, isDark]);
  // A property of the element and no style in the markup: the policy of the page allows no inline style.
  useEffect(() => {
    if (place.current) place.current.style.height = height && state.status !== "failed" ? `${height}px` : "";
  }, [height, state.status]);
  const failure = state.status === "failed" && (state.reason ? t.failed(showControls(state.reason)) : t.late);
  return (
    <div class={`preview ${kind}`}>
      {failure ? <p class="preview-problem small" role="status">{failure}</p> : (
        <div class="preview-frame" ref={place}>
          {state.status === "drawing" && <span class="preview-wait"><Spinner label={t.drawing} /></span>}
          {isNear && <iframe key={`${kind}${isDark}`} ref={frame} class="sandboxed" sandbox="allow-scripts" allow="" referrerpolicy="no-referrer" title={t.title(kind === "mermaid" ? "Mermaid" : kind.toUpperCase())} />}
        </div>
      )}
      {state.status === "drawn" && state.isReduced && <p class="preview-note small muted">{t.reduced}</p>}
    </div>
  );
}

function useIsNear(place: { current: HTMLElement | null }): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const observer = new IntersectionObserver((seen) => setNear(seen.at(-1)!.isIntersecting), { rootMargin: "1500px" });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return isNear;
}

function useIsDark(): boolean {
  const { theme } = useStore(settings);
  const [isSystemDark, setSystemDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const update = () => setSystemDark(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return theme === "auto" ? isSystemDark : theme === "dark";
}
