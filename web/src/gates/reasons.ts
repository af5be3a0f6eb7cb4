/** Why the server asks, in the language of the page where it is one of the usual reasons; in the server's own words elsewhere. */
import { language } from "../app/words";
import { plain } from "./hidden";

const USUAL: readonly (readonly [RegExp, (...found: string[]) => string])[] = [
  [/^(\S+) asks every time$/, (tool) => `${tool} 每次都要询问`],
  [/^no rule says anything of this call of (\S+)$/, (tool) => `没有规则提到 ${tool} 的这次调用`],
  [/^its result is read by a person first$/, () => "结果须先由人审阅"],
  [/^it failed, and that is read by a person first$/, () => "调用失败，须先由人审阅"],
  [/^the same calls, over and over: for the third time(.*)$/s, (pattern) => `相同的调用已是第三次${pattern}`],
];

export function sayWhy(why: string): string {
  if (language.value === "zh")
    for (const [pattern, say] of USUAL) {
      const found = pattern.exec(why);
      if (found) return plain(say(...found.slice(1)));
    }
  return plain(why);
}
