"""Texts of the gate dialogs: titles, keys, panels, and messages after an answer."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class GateTexts(Struct, frozen=True):
    """The texts of a gate dialog; `{}` is replaced by escaped text."""

    # Titles
    call: str
    egress: str
    loop: str
    manual: str
    result: str
    failed_result: str
    question: str
    limit: str
    limit_about: str
    form: str
    client: str
    # Details
    because: str
    origin: str
    read_only: str
    idempotent: str
    at_most_once: str
    where: str
    below: str
    told: str
    claimed: str
    egress_why: str
    client_why: str
    no_tool: str
    exactly: str
    edited: str
    nothing: str
    ran_with: str
    ran_plain: str
    asks_this: str
    your_answer: str
    preview: str
    preview_edited: str
    hidden: str
    mixed: str
    foreign: str
    styled: str
    two_ways: str
    more: str
    unread: str  # `one|many`, like `more` and `days`
    # Results
    would_read: str
    will_read: str
    empty: str
    excerpt: str
    drops: str
    attached: str
    untrusted: str
    private: str
    select_first: str
    taken: str
    redacted: str
    edit_result: str
    written_out: str
    # Keys
    k_once: str
    k_run_edited: str
    k_send_this: str
    k_all_edits: str
    k_always: str
    k_deny: str
    k_deny_all: str
    k_edit: str
    k_edit_again: str
    k_undo: str
    k_did: str
    k_let: str
    k_send: str
    k_redact: str
    k_redact_all: str
    k_withhold: str
    k_yes: str
    k_no: str
    k_continue: str
    k_end: str
    k_words: str
    k_fill: str
    k_fill_again: str
    k_help: str
    k_later: str
    k_back: str
    k_store: str
    k_choose: str
    k_where: str
    k_long: str
    k_next: str
    k_show: str
    k_json: str
    k_form: str
    k_others: str
    k_stop: str
    k_withhold_stop: str
    k_failed: str
    k_enter: str
    # Panels
    always_one: str
    always_many: str
    loop_always: str
    here: str
    everywhere: str
    in_folder: str
    only_owners: str
    session_only: str
    forever: str
    hour: str
    day: str
    week: str
    reason: str
    reason_form: str
    others: str
    hand_title: str
    failed: str
    answer: str
    edit_title: str
    fill_title: str
    as_json: str
    no_json: str
    no_object: str
    unchanged: str
    needs_text: str
    optional: str
    left_out: str
    yes: str
    no: str
    # After an answer
    cannot: str
    cannot_member: str
    sending: str
    stored: str
    answered_otherwise: str
    answered_by: str
    gate_closed: str
    gate_expired: str
    unknown_gate: str
    hash_mismatch: str
    away: str
    other: str
    left: str
    expired: str
    days: str
    hours: str
    # Help
    help: dict[str, str]
    help_result: dict[str, str]
    help_ask: dict[str, str]
    help_limit: dict[str, str]


EN: Final = load_texts("terminal.gates", "en", GateTexts)
ZH: Final = load_texts("terminal.gates", "zh", GateTexts)


def get_gate_texts(language: Literal["en", "zh"]) -> GateTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
