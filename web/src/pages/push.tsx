/** Settings of push notifications: turn them on in this browser, and remove others. */
import { useEffect, useState } from "preact/hooks";
import { attempt } from "../app/app";
import { format } from "../app/texts";
import { Button, ErrorLine } from "../ui/components";
import { useFetch } from "../app/useFetch";
import { currentSubscription, fetchPush, isSupported, removeSubscription, subscribe, unsubscribe } from "./pushWorker";
import { useTexts } from "../locales/push.gen";

const STORED = "everturn.push"; // the id of this browser's subscription

export function Push() {
  const t = useTexts();
  const { value, reload } = useFetch(fetchPush);
  const [own, setOwn] = useState(localStorage.getItem(STORED) ?? "");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (isSupported()) void currentSubscription().then((found) => found || setOwn(""), () => undefined);
  }, []);
  if (!value) return null;
  const isOn = value.subscriptions.some(({ id }) => id === own);
  const why = !isSecureContext ? t.insecure : !isSupported() ? t.missing : !value.key ? t.unavailable : Notification.permission === "denied" ? t.denied : "";
  const remember = (id: string) => {
    if (id) localStorage.setItem(STORED, id);
    else localStorage.removeItem(STORED);
    setOwn(id);
  };
  const turnOn = async () => {
    setBusy(true);
    setProblem("");
    try {
      if (Notification.permission !== "granted") await Notification.requestPermission();
      remember((await subscribe(value.key, browserName(t.unnamed))).id);
    } catch (error) {
      setProblem(t.failed(error instanceof Error ? error.message : String(error)));
    }
    setBusy(false);
    reload();
  };
  const remove = async (id: string) => {
    if (id === own) {
      await attempt(unsubscribe());
      remember("");
    }
    await attempt(removeSubscription(id));
    reload();
  };
  return (
    <section class="card">
      <h2>{t.title}</h2>
      <p class="small muted">{t.hint}</p>
      {why ? <p class="small muted" role="status">{why}</p> : !isOn && <div><Button icon="inbox" disabled={isBusy} onClick={() => void turnOn()}>{t.on}</Button></div>}
      {problem && <ErrorLine>{problem}</ErrorLine>}
      {value.subscriptions.length > 0 && (
        <ul class="push-browsers" aria-label={t.browsers}>
          {value.subscriptions.map(({ id, label, created }) => (
            <li key={id} class="row">
              <span class="grow">{label || t.unnamed}{id === own && ` (${t.this})`} <span class="small muted">{t.since(format.moment(created))}</span></span>
              {id === own ? <Button little onClick={() => void remove(id)}>{t.off}</Button> : <Button little kind="quiet" icon="trash" aria-label={t.remove(label || t.unnamed)} onClick={() => void remove(id)} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** A name by which a person knows the browser again. */
function browserName(otherwise: string): string {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrome\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : otherwise;
  const system = /Android/.test(agent) ? "Android" : /iPhone|iPad/.test(agent) ? "iOS" : /Windows/.test(agent) ? "Windows" : /Mac OS/.test(agent) ? "macOS" : /Linux/.test(agent) ? "Linux" : "";
  return system ? `${browser}, ${system}` : browser;
}
