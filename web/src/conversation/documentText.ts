/** Document text: the stored text of a document. Its first line says how the bytes after it are divided. */
export interface DocumentText {
  readonly unit: "page" | "slide" | "sheet" | "part";
  readonly problem: string;
  readonly sections: readonly { readonly title: string; readonly text: string }[];
  readonly isCut: boolean;
}

interface Info {
  kind?: string;
  sizes?: number[];
  titles?: string[];
  problem?: string;
}

export const MOST_SHOWN = 200_000; // bytes of text
const UNITS: Record<string, DocumentText["unit"]> = { pdf: "page", pptx: "slide", odp: "slide", xlsx: "sheet", ods: "sheet" };

export function readDocumentText(bytes: Uint8Array): DocumentText {
  const end = bytes.indexOf(10);
  const decoder = new TextDecoder();
  const info = JSON.parse(decoder.decode(bytes.subarray(0, end))) as Info;
  const sections: { title: string; text: string }[] = [];
  let at = end + 1;
  let left = MOST_SHOWN;
  for (const [number, size] of (info.sizes ?? []).entries()) {
    if (left <= 0) break;
    sections.push({ title: info.titles?.[number] ?? "", text: decoder.decode(bytes.subarray(at, at + Math.min(size, left))) });
    at += size;
    left -= size;
  }
  return { unit: UNITS[info.kind ?? ""] ?? "part", problem: info.problem ?? "", sections, isCut: left < 0 || sections.length < (info.sizes ?? []).length };
}
