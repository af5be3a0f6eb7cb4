"""Texts of the transcript, in English and Chinese."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class ChatTexts(Struct, frozen=True):
    """The texts of the transcript. `one|many` has a singular and a plural, with the number as `{n}`."""

    # keys
    key_up: str
    key_down: str
    key_fold: str
    key_copy: str
    key_copy_all: str
    key_end: str
    copied: str
    new_below: str
    # states of a call
    writing: str
    pending: str
    never: str
    asking: str
    running: str
    waiting: str
    reviewing: str
    completed: str
    failed: str
    denied: str
    withheld: str
    cancelled: str
    outcome_unknown: str
    exited: str
    # details of a call
    unknown_why: str
    withheld_why: str
    waiting_why: str
    waiting_for: str
    out_why: str
    incomplete: str
    repaired: str
    edited: str
    changed: str
    asked: str
    used: str
    arguments: str
    change: str
    progress: str
    result: str
    late: str
    late_why: str
    nothing: str
    excerpt: str
    untrusted: str
    private: str
    sensitive: str
    redacted: str
    code: str
    by_rule: str
    by_person: str
    why: str
    below: str
    open_gate: str
    open_below: str
    shown_gate: str
    shown_below: str
    more_lines: str
    # where a tool runs
    function: str
    mcp: str
    client: str
    files: str
    sandbox: str
    web: str
    agent: str
    builtin: str
    # messages and steps
    you: str
    thinking: str
    thought: str
    sealed: str
    steps: str
    closing: str
    tokens_in: str
    tokens_out: str
    cached: str
    reasoning: str
    estimated: str
    restarted: str
    retried: str
    written_by: str
    length: str
    content_filter: str
    refusal: str
    error: str
    other: str
    stopped_here: str
    file: str
    selection: str  # kinds of attached context
    page: str
    note: str
    provider_called: str  # states of a tool that the provider of the model runs
    provider_completed: str
    provider_failed: str
    files_changed: str
    added: str
    deleted: str
    revert: str
    # notices
    told: str
    notice_late: str
    notice_max_steps: str
    notice_limit: str
    notice_loop: str
    notice_compaction: str
    compacted: str
    comma: str
    summarised: str
    left_out: str
    results_cleared: str
    show: str
    undo: str
    summary_by: str
    summary_focus: str
    key_undo: str
    summarizing: str
    # state and ending of a turn
    preparing: str
    composing: str
    calling: str
    asks: str
    questions: str
    parked: str
    tools_running: str
    for_client: str
    deciding: str
    finalizing: str
    step_restarted: str
    retrying: str
    retrying_now: str
    fallback: str
    stopped: str
    stopped_hard: str
    tools_out: str
    late_came: str
    turn_failed: str
    try_again: str
    next_context: str
    next_model: str
    deadline: str
    limit: str
    denied_and_stopped: str
    scope_turn: str
    scope_session: str
    scope_tenant: str
    scope_above: str
    max_steps: str
    loop: str
    reports: str
    queued: str
    next_up: str
    steers: str
    queued_files: str


EN: Final = load_texts("terminal.chat", "en", ChatTexts)

ZH: Final = load_texts("terminal.chat", "zh", ChatTexts)


def get_chat_texts(language: Literal["en", "zh"]) -> ChatTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
