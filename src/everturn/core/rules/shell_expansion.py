"""Shell expansion: words of a command that a shell would expand, what they could become, which patterns they match.

The words of `git $X` are known only when it runs. A rule that allows must match every possible expansion; a rule that
asks or denies matches if it matches one of them. Where that is hard to decide, the answer is yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from everturn.core.rules.globs import ANY_RUN, TextMatcher, Token, compile_text_glob, fold_tokens

EXPANSION_MARK: Final = "⟪"
"""The prefix of a word that the shell would expand; no literal word has it, so the two never compare equal."""

EXPANSION_MARK_END: Final = "⟫"

ExpansionCount = Literal["one", "some", "any"]


class Expansion(Struct, frozen=True, gc=False):
    """What a word could expand to.

    `one`: one word that matches the tokens. `some`: one or more words, each of which matches (file names). `any`: any
    number of words, of which the first begins as the tokens do.
    """

    tokens: tuple[Token, ...] = (ANY_RUN,)
    count: ExpansionCount = "any"

    @property
    def prefix(self) -> str:
        """The literal text that every expansion begins with."""
        return self.tokens[0] if self.tokens and isinstance(self.tokens[0], str) else ""

    @property
    def may_vanish(self) -> bool:
        """Whether it could expand to no word at all."""
        return self.count == "any" and not any(isinstance(token, str) for token in self.tokens)

    def folded(self) -> Expansion:
        """The same for folded text."""
        return Expansion(tuple(fold_tokens(self.tokens)), self.count)

    def could_begin_with(self, signs: str) -> bool:
        """Whether one of its words could begin with one of these characters."""
        return self.count == "any" or self.prefix == "" or self.prefix[0] in signs


class CommandWords(NamedTuple):
    """The words of a command, with the possible expansions of those that are not literal."""

    words: tuple[str, ...]
    expansions: tuple[Expansion | None, ...] = ()


def mark_expansion(source: str) -> str:
    """Mark a word that the shell would expand, so that it differs from every literal word."""
    return f"{EXPANSION_MARK}{source}{EXPANSION_MARK_END}"


# ------------------------------------------------------------------------------------------------ rules that allow


def matches_every_expansion(
    value: CommandWords, patterns: Sequence[Sequence[Token]], globs: Sequence[TextMatcher], is_open: bool
) -> bool:
    """Whether the words match for every possible expansion."""
    words, expansions = value
    if len(words) < len(patterns) or (len(words) > len(patterns) and not is_open):
        return False
    for tokens, glob, word, expansion in zip(patterns, globs, words, expansions, strict=False):
        if not (glob(word) if expansion is None else _matches_every_expansion(tokens, glob, word, expansion)):
            return False
    return True


def _matches_every_expansion(tokens: Sequence[Token], glob: TextMatcher, word: str, expansion: Expansion) -> bool:
    """Whether a pattern for one word matches every expansion: it names the word itself, or matches any suffix."""
    if not any(isinstance(token, int) for token in tokens):
        return glob(word)
    if expansion.count != "one" or isinstance(tokens[-1], str) or sum(isinstance(token, int) for token in tokens) > 1:
        return False
    head = tokens[0] if isinstance(tokens[0], str) else ""
    return tokens[-1] >= ANY_RUN and expansion.prefix.startswith(head)


# ----------------------------------------------------------------------------------------- rules that ask or deny


def matches_some_expansion(
    value: CommandWords, patterns: Sequence[Sequence[Token]], globs: Sequence[TextMatcher], is_open: bool
) -> bool:
    """Whether the words match for at least one possible expansion."""
    words, expansions = value
    size = len(patterns)
    at = {0}  # the possible numbers of patterns matched so far
    for word, expansion in zip(words, expansions, strict=True):
        if expansion is None:
            after = {place + 1 for place in at if place < size and globs[place](word)}
        else:
            # The unexpanded spelling is a word too, for a rule that names it.
            after = {place + 1 for place in at if place < size and globs[place](word)}
            after |= _next_positions(at, expansion, patterns)
        if is_open and size in at:
            after.add(size)
        if not after:
            return False
        at = after
    return size in at


def _next_positions(at: set[int], expansion: Expansion, patterns: Sequence[Sequence[Token]]) -> set[int]:
    size = len(patterns)
    after = set(at) if expansion.may_vanish else set[int]()
    tokens = (expansion.prefix, ANY_RUN) if expansion.count == "any" else expansion.tokens
    for place in at:
        if place >= size or not can_overlap(patterns[place], tokens):
            continue
        after.add(place + 1)
        if expansion.count == "any":
            after.update(range(place + 1, size + 1))
        elif expansion.count == "some":
            for further in range(place + 1, size):
                if not can_overlap(patterns[further], tokens):
                    break
                after.add(further + 1)
    return after


def can_overlap(pattern: Sequence[Token], tokens: Sequence[Token]) -> bool:
    """Whether some text could match both; assumed if both have wildcards and their literal ends agree."""
    if not any(isinstance(token, int) for token in pattern):
        return compile_text_glob(tokens)("".join(str(token) for token in pattern)) if tokens else not pattern
    if not any(isinstance(token, int) for token in tokens):
        return compile_text_glob(pattern)("".join(str(token) for token in tokens))
    begins = _head(pattern), _head(tokens)
    ends = _tail(pattern), _tail(tokens)
    return (begins[0].startswith(begins[1]) or begins[1].startswith(begins[0])) and (
        ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    )


def _head(tokens: Sequence[Token]) -> str:
    return tokens[0] if isinstance(tokens[0], str) else ""


def _tail(tokens: Sequence[Token]) -> str:
    return tokens[-1] if isinstance(tokens[-1], str) else ""
