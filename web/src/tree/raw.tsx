/** A message as it is stored. */
import type { Message } from "@everturn/client";
import { words } from "../app/words";
import { CopyButton, Dialog } from "../ui/kit";
import "./raw.css";

const useWords = words(
  { title: "Raw message", copy: "Copy", copied: "Copied" },
  { title: "原始消息", copy: "复制", copied: "已复制" },
);

export function Raw({ message, onClose }: { message: Message; onClose: () => void }) {
  const t = useWords();
  const text = JSON.stringify(message, null, 2);
  return (
    <Dialog wide title={t.title} onClose={onClose}>
      <div class="raw">
        <CopyButton text={text} label={t.copy} done={t.copied} />
        <pre tabIndex={0} dir="ltr"><code>{text}</code></pre>
      </div>
    </Dialog>
  );
}
