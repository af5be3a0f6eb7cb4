/** A block of code: its language, a way to copy it, and colours once it is finished and in sight. */
import type { ComponentChild } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { words } from "../app/words";
import { Button, CopyButton } from "../ui/kit";
import { nodes } from "./markup";
import { exposed } from "./plain";

const useWords = words(
  { copy: "Copy the code", copied: "Copied", wrap: "Wrap", wrapTitle: "Break long lines", code: "Code" },
  { copy: "复制代码", copied: "已复制", wrap: "换行", wrapTitle: "自动换行", code: "代码" },
);

const LONGEST = 40_000; // characters that are worth colours

export function Code({ text, language, isOpen = false }: { text: string; language: string; isOpen?: boolean }) {
  const t = useWords();
  const [wraps, setWraps] = useState(false);
  const name = /^[\w.+#-]{1,24}/.exec(language)?.[0] ?? "";
  const frame = useRef<HTMLElement>(null);
  const coloured = useColours(frame, isOpen ? "" : text, name);
  return (
    <figure class={`code ${wraps ? "wraps" : ""}`} ref={frame}>
      <figcaption>
        <span class="grow">{name || t.code}</span>
        <Button kind="quiet" little aria-pressed={wraps} title={t.wrapTitle} onClick={() => setWraps(!wraps)}>{t.wrap}</Button>
        <CopyButton text={text} label={t.copy} done={t.copied} />
      </figcaption>
      <pre tabIndex={0} dir="ltr"><code>{coloured ?? exposed(text)}</code></pre>
    </figure>
  );
}

function useColours(frame: { current: HTMLElement | null }, text: string, language: string): ComponentChild[] | null {
  const [found, setFound] = useState<{ text: string; nodes: ComponentChild[] } | null>(null);
  useEffect(() => {
    if (!text || !language || text.length > LONGEST || !frame.current) return;
    let isOver = false;
    const colour = async () => {
      const { highlighted } = await import("./highlight");
      const markup = await highlighted(exposed(text), language);
      if (markup !== null && !isOver) setFound({ text, nodes: nodes(markup) });
    };
    const sight = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      sight.disconnect();
      void colour().catch(() => {}); // without colours it is as good to read
    }, { rootMargin: "400px" });
    sight.observe(frame.current);
    return () => {
      isOver = true;
      sight.disconnect();
    };
  }, [text, language]);
  return found?.text === text ? found.nodes : null;
}
