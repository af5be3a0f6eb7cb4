/** Localization: the texts of the web UI. Each component has its own table, with the same keys in all languages. */
import { Store, useStore } from "./store";

export type Language = "en" | "zh";
type Text = string | ((...values: never[]) => string);
type TextTable = Record<string, Text>;
/** The same keys, and the same parameters. */
type SameKeys<T extends TextTable> = { [K in keyof T]: T[K] extends (...values: infer A) => string ? (...values: A) => string : string };

/** The current language. */
export const language = new Store<Language>("en");

/** Define a table: `const useTexts = defineTexts({ send: "Send" }, { send: "发送" })`, and in a component `const t = useTexts()`. */
export function defineTexts<T extends TextTable>(en: T, zh: SameKeys<T>): () => SameKeys<T> {
  const tables = { en: en as unknown as SameKeys<T>, zh };
  return () => tables[useStore(language)];
}

/** The preferred language of the browser, among those available. */
export function preferredLanguage(languages: readonly string[]): Language {
  return languages.find((tag) => /^(en|zh)\b/i.test(tag))?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

const locale = () => (language.value === "zh" ? "zh-CN" : "en");

/** Formats numbers and times in the current language. */
export const format = {
  number: (value: number) => new Intl.NumberFormat(locale(), { notation: value >= 10_000 ? "compact" : "standard" }).format(value).replace("K", "k"),
  /** Three digits: 840, 12.4k, 1.2M. */
  tokens: (value: number) => new Intl.NumberFormat(locale(), { notation: "compact", maximumSignificantDigits: 3 }).format(value).replace("K", "k"),
  bytes: (value: number) => {
    const kb = Math.ceil(value / 1024);
    return kb < 1024 ? `${format.number(kb)} KB` : `${format.number(Math.round(kb / 102.4) / 10)} MB`;
  },
  percent: (share: number) => new Intl.NumberFormat(locale(), { style: "percent" }).format(share),
  cost: (value: number) => new Intl.NumberFormat(locale(), { style: "currency", currency: "USD", maximumSignificantDigits: 3 }).format(value),
  seconds: (value: number) => {
    const [s, min] = language.value === "zh" ? ["秒", "分"] : ["s", "min"];
    if (value < 0.05) return `<0.1 ${s}`;
    return value < 60 ? `${value.toFixed(value < 10 ? 1 : 0)} ${s}` : `${Math.floor(value / 60)} ${min} ${Math.floor(value % 60)} ${s}`;
  },
  time: (timestamp: number) => new Date(timestamp * 1000).toLocaleTimeString(locale(), { hour: "numeric", minute: "2-digit" }),
  moment: (timestamp: number) => new Date(timestamp * 1000).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" }),
  /** A day as the server names it, without its year. */
  day: (day: string) => new Date(day).toLocaleDateString(locale(), { month: "short", day: "numeric", timeZone: "UTC" }),
  ago: (timestamp: number) => {
    const seconds = timestamp - Date.now() / 1000;
    const [amount, unit] =
      Math.abs(seconds) < 3600 ? [seconds / 60, "minute" as const] : Math.abs(seconds) < 86_400 ? [seconds / 3600, "hour" as const] : [seconds / 86_400, "day" as const];
    return new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(Math.round(amount), unit);
  },
};
