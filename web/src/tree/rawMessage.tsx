/** Raw message dialog: a message as stored. */
import type { Message } from "@everturn/client";
import { CopyButton, Dialog } from "../ui/components";
import "./rawMessage.css";
import { useTexts } from "../locales/rawMessage.gen";

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
