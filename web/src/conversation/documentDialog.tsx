/** Document dialog: the text of an attached document, as a model reads it. */
import { useEffect, useState } from "preact/hooks";
import type { FilePart } from "@everturn/client";
import { client, errorMessage } from "../app/app";
import { Dialog, Spinner } from "../ui/components";
import { useTexts } from "../locales/documentDialog.gen";
import "./documentDialog.css";
import { readDocumentText, type DocumentText } from "./documentText";
import { showControls } from "./textEscapes";

export function DocumentDialog({ session, part, onClose }: { session: string; part: FilePart; onClose: () => void }) {
  const t = useTexts();
  const [found, setFound] = useState<DocumentText | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isMounted = true;
    const load = async () => {
      try {
        const bytes = await (await client.blob(session, part.text ?? "")).arrayBuffer();
        if (isMounted) setFound(readDocumentText(new Uint8Array(bytes)));
      } catch (error) {
        if (isMounted) setProblem(errorMessage(error));
      }
    };
    void load();
    return () => void (isMounted = false);
  }, [session, part.text]);
  const heading = (number: number, title: string) => {
    if (!found || found.unit === "part") return "";
    return title ? `${t[found.unit](number)}: ${showControls(title)}` : t[found.unit](number);
  };
  const isEmpty = found !== null && found.sections.every((section) => !section.text.trim());
  return (
    <Dialog wide title={showControls(part.name ?? "") || part.media_type} onClose={onClose}>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {!found && !problem && <Spinner />}
      {found?.problem && <p class="muted">{t.unread(found.problem)}</p>}
      {isEmpty && <p class="muted">{t.empty}</p>}
      {found && !isEmpty && found.sections.map((section, at) => (
        <section key={at} class="document-section">
          {heading(at + 1, section.title) && <h3>{heading(at + 1, section.title)}</h3>}
          <pre tabIndex={0} dir="auto">{showControls(section.text)}</pre>
        </section>
      ))}
      {found?.isCut && <p class="muted">{t.cut}</p>}
    </Dialog>
  );
}
