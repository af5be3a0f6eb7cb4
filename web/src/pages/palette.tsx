/** Command palette shortcut: Ctrl-K (or Cmd-K) opens it. The palette is loaded when it is first opened. */
import { useEffect } from "preact/hooks";
import { Store, useStore } from "../app/store";
import { lazy } from "../app/lazy";

const isOpen = new Store(false);

export const openPalette = () => isOpen.set(true);

const CommandPalette = lazy(async () => (await import("./commandPalette")).CommandPalette);

export function Palette() {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isShortcut = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (!isShortcut || event.isComposing) return;
      event.preventDefault();
      if (isOpen.value) isOpen.set(false);
      else if (!document.querySelector("dialog[open]")) isOpen.set(true); // an open dialog comes first
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return useStore(isOpen) ? <CommandPalette onClose={() => isOpen.set(false)} /> : null;
}
