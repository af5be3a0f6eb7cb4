"""What the rig's model says at length."""

from __future__ import annotations

from typing import Final

SECTION: Final = """\
## Part {n}

The *lamp* in the **hall** was lit at `{n}:00`, and the letter lay beside it. It said, in a hand that nobody knew, that
the ferry would not come before the end of the week; see [the timetable](https://example.org/ferry) for the rest.

- first, look at the **sky**
- then at the `water`
  - and at what floats on it
1. count the boats
2. count them again

> Whoever counts twice is right once.

```python
def count(boats: list[str]) -> int:
    # number {n}
    return sum(1 for boat in boats if boat.startswith("B"))
```

"""

TABLE: Final = """\
Here is what the three of them cost:

| thing | price | stock | remark |
|:------|------:|:-----:|--------|
| lamp | 12.50 | 3 | `brass`, with a *green* shade |
| letter | 0.85 | 120 | sealed |
| ferry | 1,900,000.00 | 0 | not before **Friday** |

And that is all of it.
"""

MATH: Final = r"""
The area is $A = \pi r^2$, which costs between $5 and $6. In full:

$$
\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}
$$

and \(a^2 + b^2 = c^2\) holds, as does \[\sum_{k=1}^{n} k = \frac{n(n+1)}{2}.\]
"""

CODE: Final = """\
Two ways to say it.

```python
import asyncio


async def main() -> None:
    '''Wait a little.'''
    await asyncio.sleep(0.1)  # not long
    print(f"{1 + 1} = two")


asyncio.run(main())
```

```typescript
export const two = (one: number): number => one + one; // the same
```

```diff
- a line that goes
+ a line that comes
```
"""


def plain(words: int) -> str:
    """So many words that are neither markdown nor twice the same; one paragraph."""
    return " ".join(f"word{at}" for at in range(words))


def long(size: int) -> str:
    """Markdown of so many characters, or a little more."""
    text, n = "", 0
    while len(text) < size:
        n += 1
        text += SECTION.format(n=n)
    return text


SUMMARY: Final = """\
Goal: a report on the weather in Lisbon and Oslo, by noon.
Rules and wishes: metric units; no tables (message 3).
Done: both forecasts were looked up (call 7): 18 °C and light rain in Lisbon, 11 °C and wind in Oslo.
Open questions: whether Porto is wanted, too.
Next: write the report, then send it to Ann."""
