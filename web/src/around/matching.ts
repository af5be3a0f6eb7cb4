/** How well a text fits what was typed: 0 is not at all. Letters in order are enough; whole words and beginnings count more. */
export function fit(text: string, typed: string): number {
  const [here, wanted] = [text.toLowerCase(), typed.toLowerCase().trim()];
  if (!wanted) return 1;
  const at = here.indexOf(wanted);
  if (at === 0) return 100;
  if (at > 0) return /[\p{L}\p{N}]/u.test(here[at - 1]!) ? 60 : 80;
  const words = wanted.split(/\s+/u);
  if (words.length > 1 && words.every((word) => here.includes(word))) return 50;
  let from = 0;
  for (const letter of wanted.replace(/\s+/gu, "")) {
    const found = here.indexOf(letter, from);
    if (found < 0) return 0;
    from = found + 1;
  }
  // Letters that are scattered over a long text fit by chance.
  return wanted.length > 1 && from - here.indexOf(wanted[0]!) <= wanted.length * 4 ? 10 : 0;
}

/** Those that fit, the best first; of equals, as they were. */
export function best<T>(all: readonly T[], typed: string, textOf: (one: T) => string, most: number): T[] {
  return all
    .map((one, at) => ({ one, at, score: fit(textOf(one), typed) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, most)
    .map(({ one }) => one);
}
