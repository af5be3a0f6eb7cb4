/** Who wants to know of what. Words of one moment are told together, when `schedule` runs them. */
export class Topics {
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly due = new Set<string>();

  constructor(private readonly schedule: (run: () => void) => void = (run) => queueMicrotask(run)) {}

  /** Call `listener` after each change of a topic ("*": of any); the answer takes it away again. */
  subscribe(topic: string, listener: () => void): () => void {
    const listeners = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (!listeners.size) this.listeners.delete(topic);
    };
  }

  /** Say that something has changed. */
  touch(topic: string): void {
    const isFirst = !this.due.size;
    this.due.add(topic);
    if (isFirst) this.schedule(() => this.flush());
  }

  /** Tell those who wait, now. */
  flush(): void {
    const due = [...this.due];
    this.due.clear();
    if (due.length) due.push("*");
    for (const topic of due) for (const listener of [...(this.listeners.get(topic) ?? [])]) listener();
  }
}
