"""Prompts screen: the saved prompts, to use, write and delete them, and the layers of instructions of the session."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import DataTable, Input, Static

from everturn import api
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import EverturnError
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.gates.keys import Key, KeyBar
from everturn.terminal.tui.gates.rows import Row, message_rows, text_rows
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.table import Cells, RowTable
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.host import Host, get_app, get_host
from everturn.terminal.tui.texts.prompts import get_prompt_texts

LAYER = "layer:"
EDITED = ("shared", "user", "session")
"""The layers of instructions that people write."""


class PromptsScreen(ClosingScreen[str]):
    """A list of both, and the text of what the cursor is on. The result is the name of the prompt to use."""

    DEFAULT_CSS = """
    PromptsScreen #head { padding: 1 2; height: auto; text-style: bold; }
    PromptsScreen RowTable { margin: 0 1; height: auto; max-height: 50%; }
    PromptsScreen ScrolledRows { margin: 1 1 0 1; padding: 0 1; border-top: solid $panel; }
    PromptsScreen #note { padding: 0 2; height: auto; color: $text-warning; text-style: bold; }
    PromptsScreen KeyBar { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in "endy"),
        Binding("enter", "press('enter')", show=False),
        Binding("escape,q", "press('escape')", show=False),
    ]

    def __init__(self, start: str = "") -> None:
        super().__init__()
        self.prompts: dict[str, api.PromptView] | None = None
        self.instructions: dict[str, api.InstructionLayer] = {}
        self.problem = ""
        self._start, self._to_delete = start, ""

    def compose(self) -> ComposeResult:
        """A heading, the list, the text, the keys."""
        self.words = texts = get_prompt_texts(get_host(self).language)
        yield Static(texts.title, id="head", markup=False)
        yield RowTable((texts.name, texts.kind, texts.about))
        yield ScrolledRows(id="about")
        yield Static(id="note", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Load everything."""
        self.query_one(RowTable).focus()
        self._draw()
        self._refresh()

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self._draw)

    def _refresh(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        host = get_host(self)
        try:
            view = await _instructions(host)
            prompts = await host.server.prompts()
        except EverturnError as error:
            self.problem = escape_invisible(str(error))
        else:
            self.problem, self.prompts = "", {prompt.name: prompt for prompt in prompts}
            self.instructions = {layer.layer: layer for layer in view.layers}
        self._draw()
        if self._start and self._start in (table := self.query_one(RowTable)).names:
            table.move_cursor(row=table.names.index(self._start))
            self._start = ""

    @property
    def chosen(self) -> str:
        """What the cursor is on: the name of a prompt, or `layer:` and the name of a layer."""
        return self.query_one(RowTable).chosen

    def _names_of_layers(self) -> list[str]:
        """The layers that have a text, and those that this person can write, in the order of their requests."""
        host = get_host(self)
        written = {"user", *(["session"] if host.follower is not None else [])}
        if is_at_least(host.me.role, "owner"):
            written.add("shared")
        return [name for name in self.words.layers if name in self.instructions or name in written]

    def _draw(self) -> None:
        if not self.is_attached:
            return
        texts, table = self.words, self.query_one(RowTable)
        rows: dict[str, Cells] = {
            name: (f"/{name}", f"{texts.prompt} · {texts.scopes[prompt.scope]}", escape_invisible(prompt.description))
            for name, prompt in (self.prompts or {}).items()
        }
        if self.prompts is not None:
            for name in self._names_of_layers():
                rows[LAYER + name] = (name, texts.instructions, texts.layers[name])
        table.display = bool(rows)
        table.fill(rows)
        self.query_one(ScrolledRows).set_rows(self._rows, is_new=False)
        note = texts.sure.format(self._to_delete) if self._to_delete else self.problem
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one(KeyBar).offer(self._keys())

    def _rows(self, width: int) -> list[Row]:
        texts, chosen = self.words, self.chosen
        if self.prompts is None or not chosen:
            return list(message_rows(texts.loading, width))
        if chosen.startswith(LAYER):
            layer = self.instructions.get(chosen.removeprefix(LAYER))
            if layer is None:
                return list(message_rows(texts.empty, width))
            text = layer.text or texts.not_shown.format(size=f"{layer.size:,}")
            return list(text_rows([escape_invisible(line) for line in text.split("\n")], width))
        prompt, rows = self.prompts[chosen], list[Row]()
        if prompt.arguments:
            rows += message_rows(
                texts.arguments.format(names=", ".join(map(_argument, prompt.arguments))), width, "dim"
            )
        return [*rows, (), *text_rows([escape_invisible(line) for line in prompt.text.split("\n")], width)]

    def _may_edit(self) -> bool:
        chosen, is_owner = self.chosen, is_at_least(get_host(self).me.role, "owner")
        if chosen.startswith(LAYER):
            return chosen.removeprefix(LAYER) in EDITED and (is_owner or chosen != f"{LAYER}shared")
        prompt = (self.prompts or {}).get(chosen)
        return prompt is not None and (prompt.scope == "user" or (prompt.scope == "shared" and is_owner))

    def _keys(self) -> list[Key]:
        texts, keys = self.words, list[Key]()
        if self._to_delete:
            return [("y", texts.k_sure), ("escape", texts.k_back)]
        is_prompt = bool(self.chosen) and not self.chosen.startswith(LAYER)
        if is_prompt:
            keys.append(("enter", texts.k_use))
        if self._may_edit():
            keys.append(("e", texts.k_edit))
            keys += [("d", texts.k_delete)] if is_prompt else []
        return [*keys, ("n", texts.k_new), ("escape", texts.k_back)]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another row: a pending confirmation does not apply to it."""
        event.stop()
        if self._to_delete and self._to_delete != self.chosen:
            self._to_delete = ""
        self._draw()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a row uses the prompt, or edits the instructions."""
        event.stop()
        self.action_press("e" if self.chosen.startswith(LAYER) else "enter")

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        if key == "escape" and self._to_delete:
            self._to_delete = ""
        elif key == "escape":
            self.dismiss()
            return
        elif key not in dict(self._keys()):
            return
        elif key == "enter":
            self.dismiss(self.chosen)
            return
        elif key == "d":
            self._to_delete = self.chosen
        elif key == "y":
            deleted, self._to_delete = self._to_delete, ""
            self.run_worker(self._delete(deleted), group="do")
        else:
            self._edit("" if key == "n" else self.chosen)
        self._draw()

    def _edit(self, chosen: str) -> None:
        layer = chosen.removeprefix(LAYER) if chosen.startswith(LAYER) else ""
        text = self.instructions[layer].text if layer in self.instructions else ""
        prompt = None if layer else (self.prompts or {}).get(chosen)
        get_app(self).push_screen(PromptEditor(prompt, layer, text), self._saved)

    def _saved(self, name: str | None) -> None:
        if name:
            get_host(self).show_message(self.words.saved.format(name))
            self._start = name
        self._refresh()

    async def _delete(self, name: str) -> None:
        host, prompt = get_host(self), (self.prompts or {})[name]
        try:
            await host.server.delete_prompt(name, shared=prompt.scope == "shared")
        except EverturnError as error:
            host.show_message(str(error), "error")
        else:
            host.show_message(self.words.deleted.format(name))
        self._refresh()


class PromptEditor(ClosingScreen[str]):
    """Edits a saved prompt, a new one, or a layer of instructions."""

    DEFAULT_CSS = """
    PromptEditor Input { margin: 1 1 0 1; }
    PromptEditor #head { padding: 1 2 0 2; height: auto; text-style: bold; }
    PromptEditor TextView { margin: 1 1; }
    PromptEditor KeyBar { padding: 0 2; margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("escape", "press('escape')", show=False, priority=True),
    ]

    def __init__(self, prompt: api.PromptView | None, layer: str = "", text: str = "") -> None:
        super().__init__()
        self._prompt, self._layer = prompt, layer
        self._text = text if prompt is None else prompt.text

    def compose(self) -> ComposeResult:
        """The name and the description, or whose instructions they are; the text; the keys."""
        self.words = texts = get_prompt_texts(get_host(self).language)
        if self._layer:
            yield Static(f"{texts.instructions}: {texts.layers[self._layer]}", id="head", markup=False)
        else:
            name, about = (self._prompt.name, self._prompt.description) if self._prompt is not None else ("", "")
            yield Input(name, placeholder=texts.name_hint, disabled=self._prompt is not None, id="name")
            yield Input(about, placeholder=texts.about_hint, id="description")
        yield TextView(self._text)
        yield KeyBar()

    def on_mount(self) -> None:
        """Focus what is to be written first."""
        self.query_one(KeyBar).offer([("ctrl+s", self.words.k_save), ("escape", self.words.k_back)])
        is_new = self._prompt is None and not self._layer
        (self.query_one("#name", Input) if is_new else self.query_one(TextView)).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field."""
        event.stop()
        next_field = self.query_one("#description", Input) if event.input.id == "name" else self.query_one(TextView)
        next_field.focus()

    def action_press(self, key: str) -> None:
        """Save, or leave without saving."""
        if key == "escape":
            self.dismiss()
        else:
            self.run_worker(self._save(), exclusive=True)

    async def _save(self) -> None:
        host, text = get_host(self), self.query_one(TextView).text
        if self._layer:
            if await host.attempt(_write_layer(host, self._layer, text)) is not None:
                self.dismiss(LAYER + self._layer)
            return
        name, about = (self.query_one(f"#{field}", Input).value.strip() for field in ("name", "description"))
        kept = (
            [argument for argument in self._prompt.arguments if f"{{{{{argument.name}}}}}" in text]
            if self._prompt
            else []
        )
        is_shared = self._prompt is not None and self._prompt.scope == "shared"
        saving = host.server.write_prompt(name, text, description=about, arguments=kept, shared=is_shared)
        if await host.attempt(saving) is not None:
            self.dismiss(name)


async def _instructions(host: Host) -> api.InstructionsView:
    if host.follower is not None:
        return await host.follower.session.instructions()
    return await host.server.instructions()


async def _write_layer(host: Host, layer: str, text: str) -> api.InstructionsView:
    if layer == "session" and host.follower is not None:
        return await host.follower.session.write_instructions(text)
    return await host.server.write_instructions(text, shared=layer == "shared")


def _argument(argument: api.PromptArgumentView) -> str:
    value = "" if argument.default is None else f"={argument.default}"
    about = f" ({argument.description})" if argument.description else ""
    return escape_invisible(f"{argument.name}{value}{about}")
