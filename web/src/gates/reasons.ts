/** Reasons of a gate: translated where they are known, otherwise the server's text. */
import { language } from "../app/texts";
import { escapeInvisible } from "./invisibleChars";

const TRANSLATIONS: readonly (readonly [RegExp, (...found: string[]) => string])[] = [
  [/^(\S+) always requires approval$/, (tool) => `${tool} 每次都要询问`],
  [/^no rule covers this call of (\S+)$/, (tool) => `没有规则提到 ${tool} 的这次调用`],
  [/^its result needs review$/, () => "结果须先由人审阅"],
  [/^it failed, and the error needs review$/, () => "调用失败，须先由人审阅"],
  [/^the same calls were repeated for the third time(.*)$/s, (pattern) => `相同的调用已是第三次${pattern}`],
];

export function reasonText(why: string): string {
  if (language.value === "zh")
    for (const [pattern, say] of TRANSLATIONS) {
      const found = pattern.exec(why);
      if (found) return escapeInvisible(say(...found.slice(1)));
    }
  return escapeInvisible(why);
}
