"""Texts of the lists beside a conversation: sessions, agents, branches, files, usage, settings."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from msgspec import Struct


class ScreenTexts(Struct, frozen=True):
    """Lists, and their actions."""

    sessions: str
    search: str
    no_sessions: str
    nothing_found: str
    session_keys: str
    running: str
    waiting: str
    quarantined: str
    untitled: str
    erase: str
    erase_what: str
    erased: str
    now: str
    minutes: str
    hours: str
    days: str
    pick: str
    pick_keys: str
    agents: str
    models: str
    agent_default: str
    model_of_agent: str
    context: str
    branches: str
    branch_keys: str
    version: str
    no_branches: str
    you: str
    model: str
    notice: str
    empty: str
    delete: str
    delete_what: str
    delete_last: str
    deleted: str
    rerun: str
    compare: str
    compare_keys: str
    nothing_to_compare: str
    same: str
    files: str
    files_keys: str
    no_files: str
    revert: str
    revert_what: str
    reverted: str
    redo: str
    redo_what: str
    usage: str
    usage_keys: str
    no_usage: str
    day: str
    agent: str
    tokens_in: str
    tokens_out: str
    calls: str
    cost: str
    total: str
    settings: str
    settings_keys: str
    theme: str
    language: str
    light: str
    dark: str
    contrast: str


EN = ScreenTexts(
    sessions="Sessions",
    search="Words to look for; empty lists all",
    no_sessions="There is no session yet.",
    nothing_found="Nothing has these words.",
    session_keys="Enter opens · Ctrl+E exports · Ctrl+D erases · Esc closes",
    running="runs",
    waiting="waits for you",
    quarantined="quarantined",
    untitled="(no title)",
    erase="Erase this session?",
    erase_what="“{title}” and everything in it is taken out of the store. It cannot be brought back.",
    erased="Erased.",
    now="now",
    minutes="{n} min",
    hours="{n} h",
    days="{n} d",
    pick="Agent and model",
    pick_keys="Enter takes it · Esc closes",
    agents="Agents (for the next new session)",
    models="Models (from the next message on)",
    agent_default="the default",
    model_of_agent="that of the agent",
    context="{tokens} tokens of context",
    branches="Branches",
    branch_keys="Enter shows it · e edits · r another answer · m with another model · c compares · d deletes · Esc closes",
    version="version {at} of {of}",
    no_branches="There is nothing here yet.",
    you="you",
    model="model",
    notice="notice",
    empty="(no text)",
    delete="Delete this message?",
    delete_what="It and the {count} below it are hidden, in all branches. Models do not see them any more.",
    delete_last="It is hidden, in all branches. Models do not see it any more.",
    deleted="Deleted.",
    rerun="Another answer is on its way.",
    compare="Side by side",
    compare_keys="←/→ choose the versions · Esc closes",
    nothing_to_compare="There is only one version of this.",
    same="(the same)",
    files="Files that were changed",
    files_keys="Enter: back to before this step · a: to after it · Esc closes",
    no_files="No step of this session has changed files.",
    revert="Let files be what they were before this step?",
    revert_what="This step did: {what}. What was done after it goes, too; it can be taken back.",
    reverted="The files are what they were.",
    redo="Let files be what they were after this step?",
    redo_what="This step did: {what}. What was done after it goes; it can be taken back.",
    usage="Usage",
    usage_keys="Esc closes",
    no_usage="Nothing was used in the last 30 days.",
    day="Day",
    agent="Agent",
    tokens_in="In",
    tokens_out="Out",
    calls="Calls",
    cost="Cost",
    total="Total",
    settings="Settings",
    settings_keys="Enter takes it · Esc closes",
    theme="Theme",
    language="Language",
    light="light",
    dark="dark",
    contrast="high contrast",
)
ZH = ScreenTexts(
    sessions="会话",
    search="要查找的词；留空则列出全部",
    no_sessions="还没有会话。",
    nothing_found="没有找到这些词。",
    session_keys="回车打开 · Ctrl+E 导出 · Ctrl+D 清除 · Esc 关闭",
    running="进行中",
    waiting="等待您",
    quarantined="卡住",
    untitled="（无标题）",
    erase="清除此会话？",
    erase_what="“{title}”及其全部内容将从存储中移除，无法恢复。",
    erased="已清除。",
    now="刚刚",
    minutes="{n} 分钟",
    hours="{n} 小时",
    days="{n} 天",
    pick="代理和模型",
    pick_keys="回车选用 · Esc 关闭",
    agents="代理（用于下一个新会话）",
    models="模型（从下一条消息起）",
    agent_default="默认",
    model_of_agent="代理自己的模型",
    context="上下文 {tokens} 个词元",
    branches="分支",
    branch_keys="回车显示 · e 编辑 · r 换一个回答 · m 换模型回答 · c 比较 · d 删除 · Esc 关闭",
    version="版本 {at}/{of}",
    no_branches="这里还没有内容。",
    you="你",
    model="模型",
    notice="通知",
    empty="（无文本）",
    delete="删除此消息？",
    delete_what="它和它下面的 {count} 条在所有分支中隐藏，模型不再看到。",
    delete_last="它在所有分支中隐藏，模型不再看到。",
    deleted="已删除。",
    rerun="另一个回答正在路上。",
    compare="并排比较",
    compare_keys="←/→ 选择版本 · Esc 关闭",
    nothing_to_compare="只有一个版本。",
    same="（相同）",
    files="改动过的文件",
    files_keys="回车：还原到此步之前 · a：还原到此步之后 · Esc 关闭",
    no_files="此会话没有改动过文件。",
    revert="把文件还原到此步之前？",
    revert_what="此步做了：{what}。之后的改动也会撤销；可以再恢复。",
    reverted="文件已还原。",
    redo="把文件还原到此步之后？",
    redo_what="此步做了：{what}。之后的改动会撤销；可以再恢复。",
    usage="用量",
    usage_keys="Esc 关闭",
    no_usage="最近 30 天没有用量。",
    day="日期",
    agent="代理",
    tokens_in="输入",
    tokens_out="输出",
    calls="调用",
    cost="费用",
    total="合计",
    settings="设置",
    settings_keys="回车选用 · Esc 关闭",
    theme="主题",
    language="语言",
    light="浅色",
    dark="深色",
    contrast="高对比",
)


def get_screen_texts(language: str) -> ScreenTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
