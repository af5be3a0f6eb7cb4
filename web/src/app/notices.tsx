/** Notices for an author: an administrator opened one of their conversations. Each is shown until it is dismissed. */
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
