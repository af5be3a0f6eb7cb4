/** A formula. Until KaTeX has been fetched, and where it fails, it stands there as it was written. */
import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";
import { nodes } from "./markup";
import { visible } from "./plain";

let mathml: typeof import("./formula").mathml | null = null;

export function Formula({ text, isDisplay }: { text: string; isDisplay: boolean }) {
  const [, redraw] = useState(0);
  const drawnWith = mathml;
  useEffect(() => {
    if (mathml) return drawnWith ? undefined : redraw(1); // it came between the drawing and now
    let isOver = false;
    void import("./formula").then((loaded) => {
      mathml = loaded.mathml;
      if (!isOver) redraw(1);
    }, () => {});
    return () => { isOver = true; };
  }, []);
  const drawn = mathml && attempt(mathml, text, isDisplay);
  return <span class={isDisplay ? "formula display" : "formula"} dir="ltr">{drawn ?? <code>{visible(text)}</code>}</span>;
}

const LONGEST = 4000; // characters

function attempt(make: NonNullable<typeof mathml>, text: string, isDisplay: boolean): ComponentChild[] | null {
  if (text.length > LONGEST) return null;
  try {
    return nodes(make(text, isDisplay));
  } catch {
    return null;
  }
}
