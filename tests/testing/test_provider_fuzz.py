"""Nothing a client sends makes the provider fail: it answers, or it refuses."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.testing import test_provider_chat as in_chat
from tests.testing import test_provider_messages as in_messages
from tests.testing import test_provider_responses as in_responses

from everturn.testing.provider.faults import Format, Refused
from everturn.testing.provider.library import ScriptLibrary
from everturn.testing.provider.strict.request import check, model_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 5)
    | st.just(1.5)
    | st.sampled_from(["", " ", "text", "user", "m", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "role", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
BODIES: dict[Format, list[dict[str, Any]]] = {
    "chat": [rule.taken for rule in (*in_chat.RULES, *in_chat.FAMILIES)],
    "messages": [rule.taken for rule in in_messages.RULES],
    "responses": [rule.taken for rule in in_responses.RULES],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to everything in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in inner for place in places(child, (*path, key)))][0 if path else 1 :]


@pytest.mark.parametrize("format", BODIES)
@given(data=st.data())
def test_a_body_with_anything_anywhere_is_answered_or_refused(format: Format, data: st.DataObject):
    body = copy.deepcopy(data.draw(st.sampled_from(BODIES[format])))
    *way, last = data.draw(st.sampled_from(places(body)))
    holder: Any = body
    for key in way:
        holder = holder[key]
    holder[last] = data.draw(VALUES)
    try:
        model = model_of(format, body)
        check(format, body, {"anthropic-version": "1"})
    except Refused:
        model = "m"
    library = ScriptLibrary()
    name, script = library.find("chat", "tool1")
    assert library.answer(name, script, format, model, body).status == 200
