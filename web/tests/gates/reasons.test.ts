/** Reasons of decisions about calls, in the language of the page. */
import { afterEach, expect, it } from "vitest";
import { language } from "../../src/app/texts";
import { reasonText } from "../../src/gates/reasons";

afterEach(() => language.set("en"));

it.each([
  ["weather runs by itself", "weather runs by itself", "weather 无需询问即可运行"],
  ["forbidden may not be used", "forbidden may not be used", "forbidden 不可使用"],
  ["no rule covers this call of run", "No rule covers this call of run.", "没有规则提到 run 的这次调用。"],
  ["an agent's own words", "an agent's own words", "an agent's own words"],
])("%s", (why, english, chinese) => {
  expect(reasonText(why)).toBe(english);
  language.set("zh");
  expect(reasonText(why)).toBe(chinese);
});
