"""Texts of the first run: its messages in English and Chinese, and the template of the configuration file it writes."""

# ruff: noqa: RUF001  # Chinese has commas and colons of its own

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "welcome": "Welcome to Everturn. Nothing is configured yet: who is to answer?",
        "key": "{model}, with the key in {name}",
        "server": "{model}, which {name} serves at {address}",
        "demo": "an offline demo: no key, no network; it shows what a turn can do",
        "again": "This is written to {file}, and not asked again.",
        "which": "1 to {count} [1]: ",
        "none": "there is no {said}; a number from 1 to {count}, or Enter for the first",
        "left": "nothing was written; `everturn` asks again",
        "written": "written: {file}. It says how to change it.",
        "no_place": "there is no place for a configuration: HOME is not set; set it, or EVERTURN_MODEL",
        "unwritable": "{file} cannot be written: {why}; fix that, or try `everturn chat --model {model}`",
        "no_terminal": (
            "nothing is configured, and there is no terminal to ask on; set EVERTURN_MODEL, write {file}, or try "
            "`everturn demo --auto`"
        ),
    },
    "zh": {
        "welcome": "欢迎使用 Everturn。尚未配置：由谁来回答？",
        "key": "{model}，使用 {name} 中的密钥",
        "server": "{model}，由 {address} 上的 {name} 提供",
        "demo": "离线演示：不需要密钥和网络，展示一个回合能做什么",
        "again": "选择将写入 {file}，以后不再询问。",
        "which": "1 到 {count} [1]：",
        "none": "没有 {said}；请输入 1 到 {count} 的数字，或按回车选择第一项",
        "left": "什么也没有写入；下次运行 `everturn` 会再次询问",
        "written": "已写入 {file}，其中说明了如何修改。",
        "no_place": "没有存放配置的位置：未设置 HOME；请设置它，或设置 EVERTURN_MODEL",
        "unwritable": "无法写入 {file}：{why}；请修正，或尝试 `everturn chat --model {model}`",
        "no_terminal": "尚未配置，且没有终端可供询问；请设置 EVERTURN_MODEL、写好 {file}，或尝试 `everturn demo --auto`",
    },
}

CONFIG_TEMPLATE: Final = """\
# The configuration of Everturn. It was written once, by the first start, and is yours: nothing writes to it again.
# `everturn config check` says whether it makes sense, `everturn config show` what holds, and from which line.

# Who answers. {about}
# Another model: vendor:model, such as "openai:gpt-5.2" or "anthropic:claude-opus-5", with its key in the environment.
# Take this file away, and `everturn` asks again.
{toml}# system = "You are brief."            # what it is told before every conversation
# budget = {{ cost = 1.00, calls = 40 }}   # what a turn may use

# What it may reach. Nothing of it is on unless it is said here, or on the command line.
# [tools]
# files = "/home/you/project:ro"       # read a folder; without :ro it also writes, once you have seen the diff
# web = true                           # pages of the public web, and none of your network
# python = ["/home/you/tools.py"]      # functions of your own, each with @tool above it

# What it may do: deny beats ask, and ask beats allow. `everturn permissions explain` says which rule decides.
# [[permissions]]
# tool = "write_file"
# match = {{ path = "notes/**" }}
# action = "allow"

# Where sessions are kept. Without this: {store}
# [store]
# url = "/home/you/talks.db"
"""
MODEL_COMMENTS: Final[Mapping[str, str]] = {
    "key": "Its key is read from {name} in the environment, and is not kept here.",
    "server": "{name} serves it at {address}, on this machine.",
    "demo": "This one needs no key and no network, and is no real model.",
}


def detect_language(environ: Mapping[str, str]) -> str:
    """Return the language of the locale if there are messages in it, else English."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"
