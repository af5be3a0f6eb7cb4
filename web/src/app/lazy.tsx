/** A part of the page that is fetched when it is first needed. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Icon, Spinner } from "../ui/kit";
import { words } from "./words";
import "./boundary.css";

const useWords = words(
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
      let isHere = true;
      setFailed(false);
      load().then(
        (component) => {
          loaded = component;
          if (isHere) redraw((count) => count + 1);
        },
        () => isHere && setFailed(true),
      );
      return () => void (isHere = false);
    }, [tries]);
    const Loaded = loaded;
    if (Loaded) return <Loaded {...props} />;
    return isFailed ? <Missing isAgain={tries > 0} onRetry={() => setTries(tries + 1)} /> : <Spinner />;
  };
}

/** A browser may remember that a file could not be fetched, and a new build has other files: then only loading anew helps. */
function Missing({ isAgain, onRetry }: { isAgain: boolean; onRetry: () => void }) {
  const t = useWords();
  return (
    <div class="broken" role="alert">
      <Icon name="alert" />
      <span class="grow">{t.failed}</span>
      <Button little onClick={onRetry}>{t.again}</Button>
      {isAgain && <Button little onClick={() => location.reload()}>{t.reload}</Button>}
    </div>
  );
}
