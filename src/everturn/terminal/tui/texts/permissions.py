"""Texts of the permissions screen."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class PermissionsTexts(Struct, frozen=True):
    """Rules, tools and grants."""

    title: str
    rules: str
    tools: str
    grants: str
    explain: str
    loading: str
    how: str
    no_rules: str
    never: str
    no_grants: str
    holds: str
    everywhere: str
    by: str
    until: str
    forever: str
    offered: str
    denied: str
    auto: str
    always: str
    ask: str
    deny: str
    allow: str
    manual: str
    reviewed: str
    egress: str
    looks_at: str
    tool: str
    arguments: str
    ask_how: str
    no_json: str
    unknown_tool: str
    unfit: str
    would_hand: str
    would_review: str
    sure: str
    revoked: str
    rule: str
    where: str
    when: str
    k_revoke: str
    k_sure: str
    k_agent: str
    k_ask: str
    k_back: str


EN: Final = PermissionsTexts(
    title="Permissions of {}",
    rules="rules",
    tools="tools",
    grants="remembered",
    explain="explain",
    loading="Looking …",
    how="Deny beats ask beats allow, whatever the order. What no rule fits is asked.",
    no_rules="There are no rules: each tool says for itself whether it asks.",
    never="can never decide: {}",
    no_grants="Nothing is remembered. What is always allowed at a gate stands here, and can be revoked.",
    holds="holds in",
    everywhere="all conversations",
    by="by {}",
    until="until {}",
    forever="until it is revoked",
    offered="",
    denied="denied outright: the model is not told of it",
    auto="runs by itself",
    always="asks every time",
    ask="asks, and an answer can be remembered",
    deny="is denied",
    allow="is allowed",
    manual="done by hand",
    reviewed="its results are read by a person first",
    egress="sends its arguments outside",
    looks_at="rules look at: {}",
    tool="Tool",
    arguments="Arguments, as JSON",
    ask_how="What would become of a call? Nothing is run.",
    no_json='Arguments are a JSON object, such as {"path": "a.txt"}.',
    unknown_tool="Which tool? For example: {}",
    unfit="the arguments do not fit the tool: {}",
    would_hand="a person would run it",
    would_review="its result would be read by a person first",
    sure="Revoke it? Calls that fit this rule are asked about again.",
    revoked="Revoked: {}",
    rule="rule",
    where="holds in",
    when="until",
    k_revoke="revoke …",
    k_sure="revoke it",
    k_agent="another agent",
    k_ask="say what would happen",
    k_back="back",
)
ZH: Final = PermissionsTexts(
    title="{} 的权限",
    rules="规则",
    tools="工具",
    grants="已记住",
    explain="说明",
    loading="加载中…",
    how="拒绝优先于询问，询问优先于允许，与顺序无关。没有规则适用时会询问。",
    no_rules="没有规则：每个工具自行决定是否询问。",
    never="永远不会起作用：{}",
    no_grants="没有记住任何回答。在询问时选择“始终允许”的规则会出现在这里，可以撤销。",
    holds="适用于",
    everywhere="所有对话",
    by="由 {}",
    until="至 {}",
    forever="直到撤销",
    offered="",
    denied="一律拒绝：模型不会得知此工具",
    auto="自行运行",
    always="每次都询问",
    ask="询问，回答可以记住",
    deny="拒绝",
    allow="允许",
    manual="由人完成",
    reviewed="结果先由人审阅",
    egress="会把收到的内容发送到外部",
    looks_at="规则查看：{}",
    tool="工具",
    arguments="参数（JSON）",
    ask_how="某次调用会怎样？不会运行任何内容。",
    no_json='参数应为 JSON 对象，如 {"path": "a.txt"}。',
    unknown_tool="哪个工具？例如：{}",
    unfit="参数不符合此工具：{}",
    would_hand="将由人来执行",
    would_review="结果将先由人审阅",
    sure="撤销？符合此规则的调用将再次询问。",
    revoked="已撤销：{}",
    rule="规则",
    where="适用于",
    when="有效期",
    k_revoke="撤销…",
    k_sure="确认撤销",
    k_agent="其他代理",
    k_ask="说明会怎样",
    k_back="返回",
)


def get_permissions_texts(language: Literal["en", "zh"]) -> PermissionsTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
