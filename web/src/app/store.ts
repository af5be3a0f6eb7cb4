/** Store: an observable value, and the hooks that render again when it changes. */
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

// Subscribed in a layout effect: an effect runs after a frame, and a change before that would be missed.

/** The value of a store; renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useLayoutEffect(() => store.subscribe(() => redraw((count) => count + 1)), [store]);
  return store.value;
}

interface TopicSource {
  subscribe(topic: never, listener: () => void): () => void;
}

/** Render again whenever one of the topics of a session or an inbox changes. */
export function useTopics<S extends TopicSource>(source: S, ...topics: Parameters<S["subscribe"]>[0][]): void {
  const [, redraw] = useState(0);
  useLayoutEffect(() => {
    const rerender = () => redraw((count) => count + 1);
    const stops = topics.map((topic) => source.subscribe(topic, rerender));
    return () => stops.forEach((stop) => stop());
  }, [source, ...topics]);
}
