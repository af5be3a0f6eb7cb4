/** Formulas → MathML, as text. Fetched with the first formula. */
import katex from "katex";

/** The MathML of a formula. What cannot be read is shown as it was written. */
export function mathml(formula: string, isDisplay: boolean): string {
  return katex.renderToString(formula, {
    output: "mathml", displayMode: isDisplay, throwOnError: false, trust: false, strict: false, maxExpand: 300, maxSize: 20,
  });
}
