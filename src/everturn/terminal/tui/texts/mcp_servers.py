"""Texts of the MCP servers screen."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class McpServersTexts(Struct, frozen=True):
    """The texts of the MCP servers screen."""

    title: str
    loading: str
    none: str
    name: str
    state: str
    tools: str
    reason: str
    connecting: str
    ready: str
    down: str
    untrusted: str
    needs_login: str
    failed: str
    next_connecting: str
    next_down: str
    next_untrusted: str
    next_needs_login: str
    next_failed: str
    operator: str
    stdio: str
    http: str
    hands: str
    calls: str
    changes: str
    hash: str
    trusts: str
    is_trusted: str
    sure: str
    trusted: str
    asked: str
    changed_mark: str
    log_in_at: str
    log_in_hint: str
    waiting: str
    no_tools: str
    k_trust: str
    k_sure: str
    k_retry: str
    k_login: str
    k_back: str


EN: Final = McpServersTexts(
    title="MCP servers",
    loading="Looking …",
    none="No MCP servers are configured. Each is a table in the configuration, such as [mcp.docs] with a url or a command.",
    name="server",
    state="state",
    tools="tools",
    reason="why",
    connecting="… starting",
    ready="✓ up",
    down="× away",
    untrusted="? waits for trust",
    needs_login="? needs a login",
    failed="× failed",
    next_connecting="It was started, and has not said yet what it has.",
    next_down="It cannot be reached, and is tried again by itself. Its tools wait for it.",
    next_untrusted="It was not started. Look at what it would run, and trust it if you know it.",
    next_needs_login="Somebody has to log in, once. The token stays on the server.",
    next_failed="Its configuration does not work. Fix it, then try again.",
    operator="Whoever operates this server can do something about it.",
    stdio="Program",
    http="Address",
    hands="Gets",
    calls="Name",
    changes="Changed",
    hash="Hash",
    trusts="Trusting it trusts exactly this",
    is_trusted="Exactly this is trusted",
    sure="Trust {} as it is shown? It may then be started, and its tools can be called.",
    trusted="{} is trusted as it was shown",
    asked="{} is tried now",
    changed_mark="new or changed: it cannot be called until it is trusted",
    log_in_at="Log in at this address",
    log_in_hint="In a browser on the machine of the server: it comes back to an address there.",
    waiting="Waiting for the login",
    no_tools="it has said nothing of its tools",
    k_trust="trust …",
    k_sure="trust exactly this",
    k_retry="try now",
    k_login="log in",
    k_back="back",
)
ZH: Final = McpServersTexts(
    title="MCP 服务器",
    loading="加载中…",
    none="尚未配置 MCP 服务器。每个服务器是配置中的一个表，例如 [mcp.docs]，写明 url 或 command。",
    name="服务器",
    state="状态",
    tools="工具",
    reason="原因",
    connecting="… 启动中",
    ready="✓ 正常",
    down="× 无法连接",
    untrusted="? 等待信任",
    needs_login="? 需要登录",
    failed="× 失败",
    next_connecting="已启动，尚未说明它有哪些工具。",
    next_down="目前无法连接，会自动重试。它的工具会等待。",
    next_untrusted="尚未启动。请查看它将运行什么，确认后再信任。",
    next_needs_login="需要有人登录一次。令牌保存在服务器上。",
    next_failed="按当前配置无法工作。请修正配置后重试。",
    operator="请联系此服务器的运维人员处理。",
    stdio="程序",
    http="地址",
    hands="传入",
    calls="名称",
    changes="变化",
    hash="哈希",
    trusts="信任即信任以下内容，一字不差",
    is_trusted="已信任的正是以下内容",
    sure="按所示内容信任 {}？之后它可以启动，其工具可以调用。",
    trusted="已按所示内容信任 {}",
    asked="正在重试 {}",
    changed_mark="新增或已变化：信任之前不能调用",
    log_in_at="请在此地址登录",
    log_in_hint="请在服务器所在机器的浏览器中打开：登录后会返回那里的地址。",
    waiting="等待登录",
    no_tools="尚未说明它的工具",
    k_trust="信任…",
    k_sure="信任所示内容",
    k_retry="立即重试",
    k_login="登录",
    k_back="返回",
)


def get_mcp_texts(language: Literal["en", "zh"]) -> McpServersTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
