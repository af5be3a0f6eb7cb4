/** KaTeX: formulas to MathML, as text. Loaded with the first formula. */
import katex from "katex";

/** The MathML of a formula. An invalid formula is shown as it was written. */
export function mathml(formula: string, isDisplay: boolean): string {
  return katex.renderToString(formula, {
    output: "mathml", displayMode: isDisplay, throwOnError: false, trust: false, strict: false, maxExpand: 300, maxSize: 20,
  });
}
