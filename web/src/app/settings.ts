/** What this browser remembers of how somebody likes the page. Nothing of a conversation is kept here. */
import { Store } from "./store";
import { language, preferred, type Language } from "./words";

export interface Settings {
  language: Language | "auto";
  theme: "auto" | "light" | "dark";
  agent: string; // "": the server's first
  model: string; // "": that of the agent
  isWelcomed: boolean; // somebody has seen how a model is set up, and need not be told again
  notify: boolean; // tell of gates when the page is not looked at
  browserTools: Readonly<Record<string, "off" | "auto" | "ask_once" | "ask">>; // by name
}

const KEY = "everturn.settings";
const DEFAULTS: Settings = { language: "auto", theme: "auto", agent: "", model: "", isWelcomed: false, notify: false, browserTools: {} };

const LEAVES: readonly unknown[] = ["off", "auto", "ask_once", "ask"];
const FITS: { readonly [Name in keyof Settings]: (kept: unknown) => boolean } = {
  language: (kept) => kept === "auto" || kept === "en" || kept === "zh",
  theme: (kept) => kept === "auto" || kept === "light" || kept === "dark",
  agent: (kept) => typeof kept === "string",
  model: (kept) => typeof kept === "string",
  isWelcomed: (kept) => typeof kept === "boolean",
  notify: (kept) => typeof kept === "boolean",
  browserTools: (kept) => typeof kept === "object" && kept !== null && Object.values(kept).every((leave) => LEAVES.includes(leave)),
};

/** Settings as they were kept; what is none (of another version, or put there by others) is as if it had not been. */
export function settled(text: string): Settings {
  try {
    const kept = Object.entries((JSON.parse(text) as object | null) ?? {}).filter(([name, one]) => Object.hasOwn(FITS, name) && FITS[name as keyof Settings](one));
    return { ...DEFAULTS, ...Object.fromEntries(kept) };
  } catch {
    return DEFAULTS;
  }
}

function read(): Settings {
  try {
    return settled(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return DEFAULTS; // a private window may have no memory at all
  }
}

export const settings = new Store<Settings>(read());

export function change(some: Partial<Settings>): void {
  settings.set({ ...settings.value, ...some });
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.value));
  } catch {
    // A private window may keep nothing; the page works without.
  }
}

/** Let the document be as the settings say, now and whenever they change; in other tabs too. */
export function wear(): void {
  const put = () => {
    const { theme, language: chosen } = settings.value;
    language.set(chosen === "auto" ? preferred(navigator.languages) : chosen);
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  put();
  settings.subscribe(put);
  addEventListener("storage", (event) => event.key === KEY && settings.set(read()));
}
