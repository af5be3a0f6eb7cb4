/** Formula. Until KaTeX is loaded, and where it fails, the source is shown. */
import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parseMarkup } from "./markup";
import { showControls } from "./textEscapes";

let mathml: typeof import("./formula").mathml | null = null;

export function Formula({ text, isDisplay }: { text: string; isDisplay: boolean }) {
  const [, redraw] = useState(0);
  const drawnWith = mathml;
  useEffect(() => {
    if (mathml) return drawnWith ? undefined : redraw(1); // it was loaded between render and effect
    let isOver = false;
    void import("./formula").then((loaded) => {
      mathml = loaded.mathml;
      if (!isOver) redraw(1);
    }, () => {});
    return () => { isOver = true; };
  }, []);
  const rendered = mathml && tryRender(mathml, text, isDisplay);
  return <span class={isDisplay ? "formula display" : "formula"} dir="ltr">{rendered ?? <code>{showControls(text)}</code>}</span>;
}

const MAX_LENGTH = 4000; // characters

function tryRender(make: NonNullable<typeof mathml>, text: string, isDisplay: boolean): ComponentChild[] | null {
  if (text.length > MAX_LENGTH) return null;
  try {
    return parseMarkup(make(text, isDisplay));
  } catch {
    return null;
  }
}
