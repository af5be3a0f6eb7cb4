/** Reasons of a decision about a call: translated where they are known, otherwise the server's text. */
import { language } from "../app/texts";
import { escapeInvisible } from "./invisibleChars";

/** A reason of the server, and what it is in English, as a sentence, and in Chinese. */
const REASONS: readonly (readonly [RegExp, english: (...found: string[]) => string, chinese: (...found: string[]) => string])[] = [
  [/^(\S+) always requires approval$/, (tool) => `Every call of ${tool} requires approval.`, (tool) => `${tool} 每次都要询问。`],
  [/^(\S+) runs by itself$/, (tool) => `${tool} runs by itself`, (tool) => `${tool} 无需询问即可运行`],
  [/^(\S+) may not be used$/, (tool) => `${tool} may not be used`, (tool) => `${tool} 不可使用`],
  [/^no rule covers this call of (\S+)$/, (tool) => `No rule covers this call of ${tool}.`, (tool) => `没有规则提到 ${tool} 的这次调用。`],
  [/^a person runs this tool and enters the result$/, () => "A person runs this tool and enters the result.", () => "此工具由人来做，并说明结果。"],
  [/^its result needs review$/, () => "A person reviews the result before the model reads it.", () => "结果须先由人审阅。"],
  [/^it failed, and the error needs review$/, () => "The call failed. A person reviews the error before the model reads it.", () => "调用失败，须先由人审阅。"],
  [/^the same calls were repeated for the third time(.*)$/s, (pattern) => `The same calls were repeated for the third time${pattern}.`, (pattern) => `相同的调用已是第三次${pattern}。`],
];

export function reasonText(why: string): string {
  for (const [pattern, english, chinese] of REASONS) {
    const found = pattern.exec(why);
    if (found) return escapeInvisible((language.value === "zh" ? chinese : english)(...found.slice(1)));
  }
  return escapeInvisible(why);
}
