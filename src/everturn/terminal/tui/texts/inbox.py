"""Texts of the inbox."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class InboxTexts(Struct, frozen=True):
    """The texts of the inbox."""

    title: str
    count_one: str
    count_many: str
    empty: str
    session: str
    what: str
    since: str
    left: str
    untitled: str
    k_answer: str
    k_open: str
    k_back: str


EN: Final = InboxTexts(
    title="What waits for somebody",
    count_one="1 question, in all conversations",
    count_many="{} questions, in all conversations; the oldest first",
    empty="Nothing waits. What asks for somebody, in any conversation, will stand here.",
    session="conversation",
    what="what it asks",
    since="waits",
    left="left",
    untitled="(no title)",
    k_answer="read and answer",
    k_open="open the conversation",
    k_back="back",
)
ZH: Final = InboxTexts(
    title="等待处理",
    count_one="所有对话中有 1 个问题",
    count_many="所有对话中有 {} 个问题；最早的在前",
    empty="没有等待处理的事项。任何对话中的询问都会出现在这里。",
    session="对话",
    what="询问内容",
    since="已等待",
    left="剩余",
    untitled="（无标题）",
    k_answer="阅读并回答",
    k_open="打开对话",
    k_back="返回",
)


def get_inbox_texts(language: Literal["en", "zh"]) -> InboxTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
