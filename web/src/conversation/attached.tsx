/** The files of a message that is being written. */
import { words } from "../app/words";
import { Button, Icon, Spinner } from "../ui/kit";
import { visible } from "./plain";
import type { Uploads } from "./uploads";

const useWords = words(
  { remove: (name: string) => `Remove ${name}`, again: "Try again", sending: "Uploading", file: "file", files: "Attached files" },
  { remove: (name: string) => `移除 ${name}`, again: "重试", sending: "正在上传", file: "文件", files: "附件" },
);

export function Attached({ uploads }: { uploads: Uploads }) {
  const t = useWords();
  if (!uploads.all.length) return null;
  return (
    <ul class="attached" aria-label={t.files}>
      {uploads.all.map((one) => (
        <li key={one.id} class={one.problem ? "bad" : ""}>
          {one.preview ? <img src={one.preview} alt="" /> : <Icon name="file" />}
          <span class="ellipsis" title={one.problem || one.name}>{visible(one.name) || t.file}</span>
          {!one.done && !one.problem && <Spinner label={t.sending} />}
          {one.problem && <span class="problem" role="alert">{one.problem}</span>}
          {one.problem && one.data && <Button little kind="quiet" onClick={() => uploads.again(one.id)}>{t.again}</Button>}
          <Button little kind="quiet" icon="close" aria-label={t.remove(one.name || t.file)} onClick={() => uploads.remove(one.id)} />
        </li>
      ))}
    </ul>
  );
}
