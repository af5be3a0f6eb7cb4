/** Code block: language, copy button, a button that collapses a long one, a preview of what can be drawn, and syntax highlighting once it is complete and visible. */
import type { ComponentChild } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { lazy } from "../app/lazy";
import { Button, CopyButton } from "../ui/components";
import type { PreviewKind } from "../preview/drawPreview";
import { saveFile } from "../pages/sessions";
import { parseMarkup } from "./markup";
import { showInvisible } from "./textEscapes";
import { useTexts } from "../locales/code.gen";

const Preview = lazy(async () => (await import("../preview/preview")).Preview);

const MAX_PREVIEWED = 200_000; // characters
const FOLDABLE_FROM = 16; // lines
const MAX_HIGHLIGHTED = 40_000; // characters; longer code is not highlighted

export function Code({ text, language, isOpen = false }: { text: string; language: string; isOpen?: boolean }) {
  const t = useTexts();
  const [wraps, setWraps] = useState(false);
  const name = /^[\w.+#-]{1,24}/.exec(language)?.[0] ?? "";
  const kind = isOpen || text.length > MAX_PREVIEWED ? null : previewKind(name, text);
  const [choice, setChoice] = useState<boolean | null>(null); // null: not chosen; diagrams are drawn by themselves
  const isDrawn = kind !== null && (choice ?? kind === "mermaid");
  const [isFailed, setFailed] = useState(false);
  const [isFolded, setFolded] = useState(false);
  const hasCode = !isDrawn || isFailed;
  const lines = isOpen || !hasCode ? 0 : text.trimEnd().split("\n").length;
  const isHidden = isFolded && lines >= FOLDABLE_FROM;
  const frame = useRef<HTMLElement>(null);
  const highlighted = useHighlighting(frame, isOpen || !hasCode ? "" : text, name);
  const toggle = () => {
    setChoice(!isDrawn);
    setFailed(false);
  };
  return (
    <figure class={`code ${wraps ? "wraps" : ""}`} ref={frame}>
      <figcaption>
        {lines >= FOLDABLE_FROM && <Button kind="quiet" little icon="chevron" aria-expanded={!isFolded} aria-label={isFolded ? t.unfold : t.fold} onClick={() => setFolded(!isFolded)} />}
        <span class="grow">{name || t.code}{isHidden && ` · ${t.lines(lines)}`}</span>
        {kind && <Button kind="quiet" little icon="eye" aria-pressed={isDrawn} onClick={toggle}>{t.preview}</Button>}
        <Button kind="quiet" little aria-pressed={wraps} title={t.wrapTitle} onClick={() => setWraps(!wraps)}>{t.wrap}</Button>
        {!isOpen && <Button kind="quiet" little icon="download" aria-label={t.save} onClick={() => void saveText(text, name)} />}
        <CopyButton text={text} label={t.copy} done={t.copied} />
      </figcaption>
      {isDrawn && <Preview kind={kind} text={text} onFailed={() => setFailed(true)} />}
      {hasCode && !isHidden && <pre tabIndex={0} dir="ltr"><code>{highlighted ?? showInvisible(text)}</code></pre>}
    </figure>
  );
}

async function saveText(text: string, language: string): Promise<void> {
  const { codeFileName } = await import("./saveText");
  saveFile(new Blob([text], { type: "text/plain" }), codeFileName(language));
}

function previewKind(language: string, text: string): PreviewKind | null {
  const name = language.toLowerCase();
  if (name === "mermaid" || name === "html" || name === "svg") return name;
  return name === "xml" && /^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/.test(text) ? "svg" : null;
}

function useHighlighting(frame: { current: HTMLElement | null }, text: string, language: string): ComponentChild[] | null {
  const [found, setFound] = useState<{ text: string; nodes: ComponentChild[] } | null>(null);
  useEffect(() => {
    if (!text || !language || text.length > MAX_HIGHLIGHTED || !frame.current) return;
    let isOver = false;
    const applyHighlight = async () => {
      const { highlight } = await import("./highlight");
      const markup = await highlight(showInvisible(text), language);
      if (markup !== null && !isOver) setFound({ text, nodes: parseMarkup(markup) });
    };
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      void applyHighlight().catch(() => {}); // without highlighting it is still readable
    }, { rootMargin: "400px" });
    observer.observe(frame.current);
    return () => {
      isOver = true;
      observer.disconnect();
    };
  }, [text, language]);
  return found?.text === text ? found.nodes : null;
}
