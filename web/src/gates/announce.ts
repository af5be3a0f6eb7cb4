/** Say something at once to those who do not see the page. */
const told = new Set<string>();
let region: HTMLElement | null = null;

/** Say it once for each key. */
export function announce(key: string, text: string): void {
  if (told.has(key)) return;
  told.add(key);
  if (!region) {
    region = document.createElement("div");
    region.className = "visually-hidden";
    region.setAttribute("role", "alert");
    document.body.append(region);
  }
  const said = document.createElement("p");
  said.textContent = text;
  region.append(said);
  setTimeout(() => said.remove(), 10_000);
}
