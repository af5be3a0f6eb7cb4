/** Nodes that stay the same while what they are made of does: a node that is the same object is not drawn again. */
import type { VNode } from "preact";
import { useRef } from "preact/hooks";

export type Keep = (key: string | number, of: readonly unknown[], make: () => VNode) => VNode;

export function useKept(): Keep {
  const kept = useRef(new Map<string | number, { of: readonly unknown[]; node: VNode }>());
  return (key, of, make) => {
    const before = kept.current.get(key);
    if (before && before.of.length === of.length && before.of.every((one, at) => Object.is(one, of[at]))) return before.node;
    const node = make();
    kept.current.set(key, { of, node });
    return node;
  };
}
