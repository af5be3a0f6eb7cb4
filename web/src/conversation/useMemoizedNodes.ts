/** Memoized nodes: a node is the same object while its dependencies are the same, so Preact does not render it again. */
import type { VNode } from "preact";
import { useRef } from "preact/hooks";

export type MemoizeNode = (key: string | number, of: readonly unknown[], make: () => VNode) => VNode;

export function useMemoizedNodes(): MemoizeNode {
  const cache = useRef(new Map<string | number, { of: readonly unknown[]; node: VNode }>());
  return (key, of, make) => {
    const before = cache.current.get(key);
    if (before && before.of.length === of.length && before.of.every((dependency, index) => Object.is(dependency, of[index]))) return before.node;
    const node = make();
    cache.current.set(key, { of, node });
    return node;
  };
}
