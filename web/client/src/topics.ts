/** Topics: subscriptions to parts of a state. Changes of one moment are delivered together, when `schedule` runs them. */

/** What may change: the shape of the tree, one message, one turn (with its calls and gates), its live parts, the connection; "*" is any. */
export type Topic = "*" | "tree" | "connection" | `message:${string}` | `turn:${string}` | `live:${string}`;

export class Topics {
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly due = new Set<string>();

  constructor(private readonly schedule: (run: () => void) => void = (run) => queueMicrotask(run)) {}

  /** Call `listener` after each change of a topic ("*": any topic); returns the unsubscribe function. */
  subscribe(topic: string, listener: () => void): () => void {
    const listeners = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (!listeners.size) this.listeners.delete(topic);
    };
  }

  /** Mark a topic as changed. */
  touch(topic: string): void {
    const isFirst = !this.due.size;
    this.due.add(topic);
    const { schedule } = this; // not called as a method: a browser's requestAnimationFrame refuses every `this` but the window
    if (isFirst) schedule(() => this.flush());
  }

  /** Call the listeners of changed topics now. */
  flush(): void {
    const due = [...this.due];
    this.due.clear();
    if (due.length) due.push("*");
    for (const topic of due) for (const listener of [...(this.listeners.get(topic) ?? [])]) listener();
  }
}
