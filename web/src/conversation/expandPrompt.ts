/** Expansion of a saved prompt: `{{argument}}` is replaced by its value, as `everturn.core.tenants.saved_prompts` does. */
import type { PromptView } from "@everturn/client";

export type Values = Readonly<Record<string, string>>;

/** The arguments that have neither a value nor a default. */
export function missingArguments({ arguments: all }: PromptView, values: Values): string[] {
  return all.filter(({ name, default: byDefault }) => !values[name] && byDefault == null).map(({ name }) => name);
}

/** The text with its arguments filled in. A value is inserted as it is: placeholders in it stand for nothing. */
export function expandPrompt({ text, arguments: all }: PromptView, values: Values): string {
  const filled = new Map(all.map(({ name, default: byDefault }) => [name, values[name] || (byDefault ?? "")]));
  return text.replace(/\{\{\s*([^{}\s]+)\s*\}\}/g, (whole, name: string) => filled.get(name) ?? whole);
}

/** The prompts whose name begins with what was typed after the slash; then those that have it elsewhere. */
export function matchPrompts(prompts: readonly PromptView[], typed: string): PromptView[] {
  const word = typed.slice(1).trim().toLowerCase();
  const starts = prompts.filter(({ name }) => name.startsWith(word));
  return [...starts, ...prompts.filter((one) => !starts.includes(one) && (one.name + one.description.toLowerCase()).includes(word))];
}
