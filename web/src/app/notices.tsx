/** Banners that load after the page: the browser is offline, and notices for an author that an administrator opened one of
 * their conversations, each until it is dismissed.
 */
import { useEffect, useState } from "preact/hooks";
import { client, attempt } from "./app";
import { hrefFor } from "./route";
import { format } from "./texts";
import { useFetch, useInterval } from "./useFetch";
import { Button, Icon } from "../ui/components";
import { useTexts } from "../locales/notices.gen";

const PERIOD = 60; // seconds between two looks

export function Notices() {
  const t = useTexts();
  const { value, reload } = useFetch(() => client.notices());
  useInterval(PERIOD, reload);
  return (
    <>
      <OfflineBanner />
      {value?.notices.map(({ id, session, title, by, reason, at, expires }) => (
        <div class="banner warn" role="note" key={id}>
          <Icon name="eye" />
          <span class="grow" dir="auto">{t.opened(by, title, format.moment(at), format.time(expires), reason)} <a href={hrefFor({ page: "session", session })}>{t.show}</a></span>
          <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={() => void attempt(client.dismissNotice(id)).then(reload)} />
        </div>
      ))}
    </>
  );
}

function OfflineBanner() {
  const t = useTexts();
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = () => setOnline(navigator.onLine);
    const kinds = ["online", "offline"];
    kinds.forEach((kind) => addEventListener(kind, update));
    return () => kinds.forEach((kind) => removeEventListener(kind, update));
  }, []);
  return isOnline ? null : <div class="banner warn" role="status"><Icon name="alert" /><span class="grow">{t.offline}</span></div>;
}
