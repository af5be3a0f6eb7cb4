/** Raw message dialog: a message as stored. */
import type { Message } from "@everturn/client";
import { defineTexts } from "../app/texts";
import { CopyButton, Dialog } from "../ui/components";
import "./rawMessage.css";

const useTexts = defineTexts(
  { title: "Raw message", copy: "Copy", copied: "Copied" },
  { title: "原始消息", copy: "复制", copied: "已复制" },
);

export function RawMessage({ message, onClose }: { message: Message; onClose: () => void }) {
  const t = useTexts();
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
