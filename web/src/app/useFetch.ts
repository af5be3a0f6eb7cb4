/** Hooks to fetch something from the server, and to repeat a function while the tab is visible. */
import { useCallback, useEffect, useState } from "preact/hooks";
import { errorMessage } from "./app";

export interface Fetched<T> {
  readonly value?: T;
  readonly problem?: string;
  readonly reload: () => void;
}

/** Fetch something from the server; the old value stays while it is fetched again. */
export function useFetch<T>(load: () => Promise<T>, ...dependencies: readonly unknown[]): Fetched<T> {
  const [state, setState] = useState<{ value?: T; problem?: string }>({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    load().then(
      (value) => isCurrent && setState({ value }),
      (error: Error) => isCurrent && setState((before) => ({ ...before, problem: errorMessage(error) })),
    );
    return () => void (isCurrent = false);
  }, [tries, ...dependencies]);
  return { ...state, reload: useCallback(() => setTries((count) => count + 1), []) };
}

/** Call a function at an interval, while the tab is visible. */
export function useInterval(seconds: number, run: () => void): void {
  useEffect(() => {
    if (!seconds) return;
    const timer = setInterval(() => document.hidden || run(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds, run]);
}
