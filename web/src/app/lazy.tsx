/** Lazy loading: a component whose module is fetched when it is first rendered. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Icon, Spinner } from "../ui/components";
import { defineTexts } from "./texts";
import "./errorBoundary.css";

const useTexts = defineTexts(
  { failed: "This part could not be fetched.", again: "Try again", reload: "Reload the page" },
  { failed: "无法载入这一部分。", again: "重试", reload: "重新载入页面" },
);

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [tries, setTries] = useState(0);
    const [, redraw] = useState(0);
    const [isFailed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      let isMounted = true;
      setFailed(false);
      load().then(
        (component) => {
          loaded = component;
          if (isMounted) redraw((count) => count + 1);
        },
        () => isMounted && setFailed(true),
      );
      return () => void (isMounted = false);
    }, [tries]);
    const Loaded = loaded;
    if (Loaded) return <Loaded {...props} />;
    return isFailed ? <LoadFailed isAgain={tries > 0} onRetry={() => setTries(tries + 1)} /> : <Spinner />;
  };
}

/** A browser may cache that a file could not be fetched, and a new build has other files: then only a reload helps. */
function LoadFailed({ isAgain, onRetry }: { isAgain: boolean; onRetry: () => void }) {
  const t = useTexts();
  return (
    <div class="error-fallback" role="alert">
      <Icon name="alert" />
      <span class="grow">{t.failed}</span>
      <Button little onClick={onRetry}>{t.again}</Button>
      {isAgain && <Button little onClick={() => location.reload()}>{t.reload}</Button>}
    </div>
  );
}
