"""Shell expansion: words of a command that a shell would expand, what they could become, which patterns they could fit.

What the words of `git $X` are is known when it runs. A rule that allows must fit whatever they become; a rule that asks
or denies fits if it fits anything they could become. Where that is hard to say, it is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from everturn.core.globs import RUN, Fits, Token, fold_tokens, text_glob

MARK: Final = "⟪"
"""What a word begins with that the shell would expand; no literal word does, so the two are never the same."""

MARK_END: Final = "⟫"

Count = Literal["one", "some", "any"]


class Expansion(Struct, frozen=True, gc=False):
    """What a word could become.

    `one`: one word that fits the tokens. `some`: one or more words, each of which does (file names). `any`: any number
    of words, of which the first begins as the tokens do.
    """

    tokens: tuple[Token, ...] = (RUN,)
    count: Count = "any"

    @property
    def prefix(self) -> str:
        """The literal text that it surely begins with."""
        return self.tokens[0] if self.tokens and isinstance(self.tokens[0], str) else ""

    @property
    def may_vanish(self) -> bool:
        """Whether it could be no word at all."""
        return self.count == "any" and not any(isinstance(token, str) for token in self.tokens)

    def folded(self) -> Expansion:
        """The same for folded text."""
        return Expansion(tuple(fold_tokens(self.tokens)), self.count)

    def could_begin_with(self, signs: str) -> bool:
        """Whether one of its words could begin with one of these characters."""
        return self.count == "any" or self.prefix == "" or self.prefix[0] in signs


class Words(NamedTuple):
    """The words of a command, and what those could become that are not literal."""

    words: tuple[str, ...]
    expansions: tuple[Expansion | None, ...] = ()


def marked(source: str) -> str:
    """A word that the shell would expand, as it stands among literal ones."""
    return f"{MARK}{source}{MARK_END}"


# ------------------------------------------------------------------------------------------------ rules that allow


def fits_any(value: Words, patterns: Sequence[Sequence[Token]], globs: Sequence[Fits], is_open: bool) -> bool:
    """Whether words fit, whatever those that are not literal become."""
    words, expansions = value
    if len(words) < len(patterns) or (len(words) > len(patterns) and not is_open):
        return False
    for tokens, glob, word, expansion in zip(patterns, globs, words, expansions, strict=False):
        if not (glob(word) if expansion is None else _holds(tokens, glob, word, expansion)):
            return False
    return True


def _holds(tokens: Sequence[Token], glob: Fits, word: str, expansion: Expansion) -> bool:
    """Whether a pattern for one word fits all that an expansion could become: that one itself, or any beginning."""
    if not any(isinstance(token, int) for token in tokens):
        return glob(word)
    if expansion.count != "one" or isinstance(tokens[-1], str) or sum(isinstance(one, int) for one in tokens) > 1:
        return False
    head = tokens[0] if isinstance(tokens[0], str) else ""
    return tokens[-1] >= RUN and expansion.prefix.startswith(head)


# ----------------------------------------------------------------------------------------- rules that ask or deny


def could_fit(value: Words, patterns: Sequence[Sequence[Token]], globs: Sequence[Fits], is_open: bool) -> bool:
    """Whether words could fit, for something that those that are not literal could become."""
    words, expansions = value
    size = len(patterns)
    at = {0}  # how many patterns may have been used up
    for word, expansion in zip(words, expansions, strict=True):
        if expansion is None:
            after = {place + 1 for place in at if place < size and globs[place](word)}
        else:
            # Its own spelling is a word too, for a rule that names it.
            after = {place + 1 for place in at if place < size and globs[place](word)}
            after |= _after(at, expansion, patterns)
        if is_open and size in at:
            after.add(size)
        if not after:
            return False
        at = after
    return size in at


def _after(at: set[int], expansion: Expansion, patterns: Sequence[Sequence[Token]]) -> set[int]:
    size = len(patterns)
    after = set(at) if expansion.may_vanish else set[int]()
    tokens = (expansion.prefix, RUN) if expansion.count == "any" else expansion.tokens
    for place in at:
        if place >= size or not meet(patterns[place], tokens):
            continue
        after.add(place + 1)
        if expansion.count == "any":
            after.update(range(place + 1, size + 1))
        elif expansion.count == "some":
            for further in range(place + 1, size):
                if not meet(patterns[further], tokens):
                    break
                after.add(further + 1)
    return after


def meet(pattern: Sequence[Token], tokens: Sequence[Token]) -> bool:
    """Whether a text could fit both; said to be so where both have wildcards, and their ends agree."""
    if not any(isinstance(token, int) for token in pattern):
        return text_glob(tokens)("".join(str(token) for token in pattern)) if tokens else not pattern
    if not any(isinstance(token, int) for token in tokens):
        return text_glob(pattern)("".join(str(token) for token in tokens))
    begins = _head(pattern), _head(tokens)
    ends = _tail(pattern), _tail(tokens)
    return (begins[0].startswith(begins[1]) or begins[1].startswith(begins[0])) and (
        ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    )


def _head(tokens: Sequence[Token]) -> str:
    return tokens[0] if isinstance(tokens[0], str) else ""


def _tail(tokens: Sequence[Token]) -> str:
    return tokens[-1] if isinstance(tokens[-1], str) else ""
