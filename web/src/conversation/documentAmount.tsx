/** Document amount: the pages, slides or sheets of an attached document. */
import type { FilePart } from "@everturn/client";
import { useTexts } from "../locales/documentAmount.gen";

export function DocumentAmount({ part }: { part: FilePart }) {
  const t = useTexts();
  const count = part.pages ?? 0;
  if (!count) return null;
  const text = part.media_type.includes("presentation") ? t.slides : part.media_type.includes("spreadsheet") ? t.sheets : t.pages;
  return <span class="muted">{text(count)}</span>;
}
