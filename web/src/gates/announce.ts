/** ARIA live region: announces a text to screen readers. */
const announced = new Set<string>();
let region: HTMLElement | null = null;

/** Announce a text once per key. */
export function announce(key: string, text: string): void {
  if (announced.has(key)) return;
  announced.add(key);
  if (!region) {
    region = document.createElement("div");
    region.className = "visually-hidden";
    region.setAttribute("role", "alert");
    document.body.append(region);
  }
  const paragraph = document.createElement("p");
  paragraph.textContent = text;
  region.append(paragraph);
  setTimeout(() => paragraph.remove(), 10_000);
}
