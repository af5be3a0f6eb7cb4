"""Imported conversation: collects the messages of another library's list and builds messages of ours from them.

The list may be broken: results may be missing, come twice, or belong to no call; ids may repeat. What is built is valid all
the same: every call has exactly one result, and no message is empty. What had to be left out is in `warnings`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from everturn.core.canonical_json import replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import FilePart, NoticePart, Output, Part, ReasoningPart, StepPart, TextPart, ToolPart

IMPORT_ORIGIN = "import"
NO_RESULT_IMPORTED = "The conversation was imported without a result for this call. Nothing was run here."


class ImportedCall(Struct):
    """A call in an imported answer, and its result once it was found."""

    id: str
    name: str
    arguments: str
    output: Output | None = None
    is_error: bool = False


AnswerPart = TextPart | ReasoningPart | FilePart | ImportedCall
UserPart = TextPart | FilePart | NoticePart


class _Draft(Struct):
    """A message in the making: a user message has one step, an answer as many as the model was asked."""

    role: str
    steps: list[list[Part | ImportedCall]]
    by: str = ""


class ConversationBuilder:
    """Collects a conversation in the order of its list. Consecutive answers and results become one answer with steps."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.files: dict[str, bytes] = {}  # blob -> content
        self.position = 0  # in the list, for warnings
        self._system: list[str] = []
        self._drafts: list[_Draft] = []
        self._calls: list[ImportedCall] = []

    @property
    def system(self) -> str:
        """The instructions that were in the list. They are reported and not imported."""
        return "\n\n".join(dict.fromkeys(self._system))

    def warn(self, text: str) -> None:
        """Report something that is left out."""
        self.warnings.append(f"message {self.position}: {replace_surrogates(text)}")

    def add_system(self, text: str) -> None:
        """Add instructions."""
        if text.strip():
            self._system.append(replace_surrogates(text))

    def add_user(self, parts: Iterable[UserPart]) -> None:
        """Add a user message, unless it is empty."""
        if kept := [part for part in parts if not _is_empty(part)]:
            self._drafts.append(_Draft("user", [[*kept]]))

    def add_answer(self, parts: Iterable[AnswerPart], by: str = "") -> None:
        """Add an answer of the model, or one more step of the last answer."""
        step: list[Part | ImportedCall] = []
        for part in parts:
            if isinstance(part, ImportedCall):
                self._calls.append(part)
                step.append(part)
            elif not _is_empty(part):
                step.append(part)
        if not step:
            return
        last = self._drafts[-1] if self._drafts else None
        if last is not None and last.role == "assistant":
            last.steps.append(step)
            last.by = last.by or by
        else:
            self._drafts.append(_Draft("assistant", [step], by))

    def add_result(
        self, call: str, text: str, *, name: str = "", is_error: bool = False, files: Iterable[FilePart] = ()
    ) -> None:
        """Add the result of the last open call with this id, or without an id of the first open call with this name."""
        open_calls = [other for other in self._calls if other.output is None]
        if call:
            found = next((other for other in reversed(open_calls) if other.id == call), None)
        else:
            found = next((other for other in open_calls if other.name == name), None)
        if found is None:
            self.warn(f"there is no open call {(call or name)!r} for this result; it was left out")
            return
        found.output = Output(replace_surrogates(text), attachments=tuple(files), origin=IMPORT_ORIGIN, untrusted=True)
        found.is_error = is_error

    def add_file(self, data: bytes, media_type: str, name: str = "") -> FilePart:
        """Collect the content of a file, and return the part that refers to it."""
        blob = hashlib.sha256(data).hexdigest()
        self.files[blob] = data
        return FilePart(blob, media_type, len(data), replace_surrogates(name))

    def build(self, prefix: str) -> tuple[Message, ...]:
        """Build the messages; their ids and those of the calls begin with `prefix`, and the first has no parent."""
        messages: list[Message] = []
        for number, draft in enumerate(self._drafts):
            name = f"{prefix}-{number}"
            parent = messages[-1].id if messages else None
            if draft.role == "user":
                parts = tuple(part for part in draft.steps[0] if not isinstance(part, ImportedCall))
                messages.append(Message(name, parent, "user", parts, imported=True))
            else:
                by = f"{IMPORT_ORIGIN}:{draft.by}" if draft.by else IMPORT_ORIGIN
                parts = tuple(_answer_parts(draft, name))
                messages.append(Message(name, parent, "assistant", parts, by=replace_surrogates(by), imported=True))
        return tuple(messages)


def _is_empty(part: Part) -> bool:
    return isinstance(part, TextPart | ReasoningPart) and not part.text.strip()


def _answer_parts(draft: _Draft, name: str) -> Iterator[Part]:
    count = 0
    for number, step in enumerate(draft.steps, 1):
        has_calls = False
        for part in step:
            if isinstance(part, ImportedCall):
                yield _tool_part(part, f"{name}-{count}")
                count, has_calls = count + 1, True
            else:
                yield part
        yield StepPart(number, "tool_calls" if has_calls else "stop")


def _tool_part(call: ImportedCall, name: str) -> ToolPart:
    output = call.output or Output(NO_RESULT_IMPORTED, code="cancelled", origin=IMPORT_ORIGIN, untrusted=True)
    state = "cancelled" if call.output is None else "failed" if call.is_error else "completed"
    return ToolPart(
        name,
        replace_surrogates(call.name) or "unknown",
        replace_surrogates(call.arguments),
        state=state,
        output=output,
        provider_id=replace_surrogates(call.id),
    )
