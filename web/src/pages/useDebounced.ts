/** Debounce hook. */
import { useEffect, useState } from "preact/hooks";

/** Debounced value: follows another value once that has stopped changing. */
export function useDebounced<T>(value: T, milliseconds = 200): T {
  const [debounced, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return debounced;
}
