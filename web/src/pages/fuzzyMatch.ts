/** Fuzzy match score of a text: 0 is no match. Letters in order are enough; whole words and prefixes score higher. */
export function matchScore(text: string, typed: string): number {
  const [haystack, needle] = [text.toLowerCase(), typed.toLowerCase().trim()];
  if (!needle) return 1;
  const position = haystack.indexOf(needle);
  if (position === 0) return 100;
  if (position > 0) return /[\p{L}\p{N}]/u.test(haystack[position - 1]!) ? 60 : 80;
  const words = needle.split(/\s+/u);
  if (words.length > 1 && words.every((word) => haystack.includes(word))) return 50;
  let from = 0;
  for (const letter of needle.replace(/\s+/gu, "")) {
    const found = haystack.indexOf(letter, from);
    if (found < 0) return 0;
    from = found + 1;
  }
  // Letters scattered over a long text match by chance.
  return needle.length > 1 && from - haystack.indexOf(needle[0]!) <= needle.length * 4 ? 10 : 0;
}

/** The best matches first; equal scores keep their order. */
export function bestMatches<T>(all: readonly T[], typed: string, textOf: (item: T) => string, limit: number): T[] {
  return all
    .map((item, index) => ({ item, index, score: matchScore(textOf(item), typed) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, limit)
    .map(({ item }) => item);
}
