/** Attachment list of the composer. */
import { Button, Icon, Spinner } from "../ui/components";
import { DocumentAmount } from "./documentAmount";
import { showControls } from "./textEscapes";
import type { Uploads } from "./uploads";
import { useTexts } from "../locales/attachmentList.gen";

export function AttachmentList({ uploads }: { uploads: Uploads }) {
  const t = useTexts();
  if (!uploads.all.length) return null;
  return (
    <ul class="attachment-list" aria-label={t.files}>
      {uploads.all.map((upload) => (
        <li key={upload.id} class={upload.problem ? "bad" : ""}>
          {upload.preview ? <img src={upload.preview} alt="" /> : <Icon name="file" />}
          <span class="ellipsis" title={upload.problem || upload.name}>{showControls(upload.name) || t.file}</span>
          {upload.done && <DocumentAmount part={upload.done.part} />}
          {upload.done?.problem && <span class="muted" role="status">{upload.done.problem}</span>}
          {!upload.done && !upload.problem && <Spinner label={t.sending} />}
          {upload.problem && <span class="problem" role="alert">{upload.problem}</span>}
          {upload.problem && upload.data && <Button little kind="quiet" onClick={() => uploads.retry(upload.id)}>{t.again}</Button>}
          <Button little kind="quiet" icon="close" aria-label={t.remove(upload.name || t.file)} onClick={() => uploads.remove(upload.id)} />
        </li>
      ))}
    </ul>
  );
}
