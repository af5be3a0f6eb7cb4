/** Texts in the languages of the page. Each part of the page has its own table, with the same keys in all languages. */
import { Store, useStore } from "./store";

export type Language = "en" | "zh";
type Text = string | ((...given: never[]) => string);
type Table = Record<string, Text>;
/** The same keys, and the same values to put in. */
type Like<T extends Table> = { [K in keyof T]: T[K] extends (...given: infer A) => string ? (...given: A) => string : string };

/** Which language is spoken now. */
export const language = new Store<Language>("en");

/** Make a table: `const useWords = words({ send: "Send" }, { send: "发送" })`, and in a component `const t = useWords()`. */
export function words<T extends Table>(en: T, zh: Like<T>): () => Like<T> {
  const tables = { en: en as unknown as Like<T>, zh };
  return () => tables[useStore(language)];
}

/** The language a browser asks for, among those there are. */
export function preferred(languages: readonly string[]): Language {
  return languages.find((one) => /^(en|zh)\b/i.test(one))?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

const locale = () => (language.value === "zh" ? "zh-CN" : "en");

/** Numbers and times, as they are written in the language of the page. */
export const say = {
  number: (value: number) => new Intl.NumberFormat(locale(), { notation: value >= 10_000 ? "compact" : "standard" }).format(value),
  cost: (value: number) => new Intl.NumberFormat(locale(), { style: "currency", currency: "USD", maximumSignificantDigits: 3 }).format(value),
  seconds: (value: number) => {
    const [s, min] = language.value === "zh" ? ["秒", "分"] : ["s", "min"];
    return value < 60 ? `${value.toFixed(value < 10 ? 1 : 0)} ${s}` : `${Math.floor(value / 60)} ${min} ${Math.floor(value % 60)} ${s}`;
  },
  time: (at: number) => new Date(at * 1000).toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit" }),
  moment: (at: number) => new Date(at * 1000).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" }),
  ago: (at: number) => {
    const seconds = at - Date.now() / 1000;
    const [amount, unit] =
      Math.abs(seconds) < 3600 ? [seconds / 60, "minute" as const] : Math.abs(seconds) < 86_400 ? [seconds / 3600, "hour" as const] : [seconds / 86_400, "day" as const];
    return new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(Math.round(amount), unit);
  },
};
