/** Banners above the page: the login has expired, plain http limits what the browser can do, the browser is offline, or an
 * administrator opened a conversation.
 */
import { useEffect, useState } from "preact/hooks";
import { Button, Icon } from "../ui/components";
import { me } from "./app";
import { lazy } from "./lazy";
import { loggedOut } from "./loggedOut";
import { recheckLogin } from "./auth";
import { useStore } from "./store";
import "./banners.css";
import { useTexts } from "../locales/banners.gen";

const Notices = lazy(async () => (await import("./notices")).Notices, true);

export function Banners() {
  return (
    <div class="banners">
      <LoggedOutBanner />
      <PlainHttpBanner />
      <Notices />
    </div>
  );
}

function LoggedOutBanner() {
  const t = useTexts();
  const isLoggedOut = useStore(loggedOut);
  const user = useStore(me);
  const [stillLoggedOut, setStillLoggedOut] = useState(false);
  useEffect(() => {
    if (!isLoggedOut) return setStillLoggedOut(false);
    const recheck = () => void recheckLogin();
    addEventListener("focus", recheck);
    return () => removeEventListener("focus", recheck);
  }, [isLoggedOut]);
  if (!isLoggedOut || user === "anonymous") return null;
  return (
    <div class="banner warn" role="alert">
      <Icon name="lock" />
      <span class="grow">{t.ended}{stillLoggedOut && ` ${t.still}`}</span>
      <a class="button little" href="/" target="_blank" rel="noopener">{t.open}</a>
      <Button little kind="primary" onClick={() => void recheckLogin().then((isLoggedIn) => setStillLoggedOut(!isLoggedIn))}>{t.again}</Button>
    </div>
  );
}

const KEY = "everturn.plain-http";

function PlainHttpBanner() {
  const t = useTexts();
  const [isShown, setShown] = useState(() => !isSecureContext && !isDismissed());
  if (!isShown) return null;
  const dismiss = () => {
    setShown(false);
    try {
      localStorage.setItem(KEY, "read");
    } catch {
      // It is shown again next time.
    }
  };
  return (
    <div class="banner" role="note">
      <Icon name="lock" />
      <span class="grow">{t.plain}</span>
      <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={dismiss} />
    </div>
  );
}

function isDismissed(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}
