/** A draft of the stored rules: edits of the list, what of it is not saved, and the drafts that wait while another scope or page is shown. */
import type { StoredRule } from "@everturn/client";
import type { RuleScope } from "./api";

export type Draft = readonly StoredRule[];

export const NEW_RULE: StoredRule = { tool: "", action: "ask" };

/** A rule as it is sent: without spaces around its texts, and without fields that are at their defaults. */
export function cleanRule(rule: StoredRule): StoredRule {
  const match = Object.fromEntries(Object.entries(rule.match ?? {}).map(([name, pattern]) => [name.trim(), pattern.trim()] as const).filter(([name]) => name));
  const note = rule.note?.trim();
  return {
    tool: rule.tool.trim(),
    action: rule.action,
    ...(Object.keys(match).length > 0 && { match }),
    ...(rule.enabled === false && { enabled: false }),
    ...(note && { note }),
  };
}

export const isSame = (left: Draft, right: Draft) => left.length === right.length && left.every((rule, at) => asText(rule) === asText(right[at]!));

/** Whether a rule is stored like this, at any place. */
export const isStored = (rule: StoredRule, stored: Draft) => stored.some((other) => asText(other) === asText(rule));

const asText = (rule: StoredRule) => {
  const { match, ...rest } = cleanRule(rule);
  return JSON.stringify([rest.tool, rest.action, rest.enabled ?? true, rest.note ?? "", Object.entries(match ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))]);
};

/** The draft with the rule at a place replaced; at the end of the list it is added. */
export const withRule = (draft: Draft, at: number, rule: StoredRule): Draft => [...draft.slice(0, at), rule, ...draft.slice(at + 1)];

export const withoutRule = (draft: Draft, at: number): Draft => draft.filter((_, index) => index !== at);

/** The draft with a rule moved up (-1) or down (1). */
export function withMoved(draft: Draft, at: number, by: -1 | 1): Draft {
  const to = at + by;
  if (to < 0 || to >= draft.length) return draft;
  const moved = [...draft];
  [moved[at], moved[to]] = [moved[to]!, moved[at]!];
  return moved;
}

/** The drafts that are not saved, one for each scope. A draft ends when it is saved or discarded, or when others save first. */
export class KeptDrafts {
  private readonly drafts = new Map<RuleScope, { version: number; draft: Draft }>();

  has(scope: RuleScope): boolean {
    return this.drafts.has(scope);
  }

  /** The draft that was begun from this version of the stored rules. */
  get(scope: RuleScope, version: number): Draft | undefined {
    const kept = this.drafts.get(scope);
    if (kept && kept.version !== version) this.drafts.delete(scope);
    return kept?.version === version ? kept.draft : undefined;
  }

  keep(scope: RuleScope, version: number, draft: Draft, stored: Draft): void {
    if (isSame(draft, stored)) this.drafts.delete(scope);
    else this.drafts.set(scope, { version, draft });
  }
}
