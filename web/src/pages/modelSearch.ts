/** Model search: the models that match what was typed, by name, vendor and capability. */
import type { ModelView } from "@everturn/client";

export interface ModelChoice extends Partial<ModelView> {
  readonly name: string;
  readonly isOwn: boolean; // the agent's own model
}

/** The models of an agent with what is known about them, in their order. */
export function describeModels(names: readonly string[], known: readonly ModelView[], own: string): ModelChoice[] {
  return names.map((name) => ({ ...(known.find((model) => model.name === name) ?? { name }), isOwn: name === own }));
}

/** Models that contain every typed word; those whose name starts with the first word come first. */
export function searchModels(all: readonly ModelChoice[], typed: string, textOf: (model: ModelChoice) => string): ModelChoice[] {
  const words = typed.toLowerCase().split(/\s+/u).filter(Boolean);
  const found = all.filter((model) => {
    const text = textOf(model).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const first = words[0];
  if (!first) return found;
  const isFirst = (model: ModelChoice) => model.name.toLowerCase().startsWith(first);
  return [...found.filter(isFirst), ...found.filter((model) => !isFirst(model))];
}
