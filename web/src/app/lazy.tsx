/** Lazy loading: a component whose module is fetched when it is first rendered. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Icon, Spinner } from "../ui/components";
import "./errorBoundary.css";
import { useTexts } from "../locales/lazy.gen";

/** `isOptional`: nothing is drawn in its place while it is fetched, or if it cannot be. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>, isOptional = false): ComponentType<P> {
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
    if (isOptional) return null;
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
