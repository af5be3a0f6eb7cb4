/** A value that views watch. */
import { useLayoutEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

// What is drawn is watched from the same moment on: effects come after a frame, and what changed until then would never be seen.

/** The value of a store; draws again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useLayoutEffect(() => store.subscribe(() => redraw((count) => count + 1)), [store]);
  return store.value;
}

interface Source {
  subscribe(topic: never, listener: () => void): () => void;
}

/** Draw again whenever one of the topics of a session or an inbox was touched. */
export function useTopics<S extends Source>(source: S, ...topics: Parameters<S["subscribe"]>[0][]): void {
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    const again = () => redraw((count) => count + 1);
    const stops = topics.map((topic) => source.subscribe(topic, again));
    return () => stops.forEach((stop) => stop());
  }, [source, ...topics]);
}
