"""Texts of the app: keys, commands, the input, and the lines around a conversation."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class AppTexts(Struct, frozen=True):
    """Keys, commands, the input, and the lines around it."""

    keys: Mapping[str, str]  # action -> what the key does
    slash: Mapping[str, str]  # command -> what it does
    groups: Mapping[str, str]
    new: str
    write: str
    write_new: str
    editing: str
    steering: str
    attached: str
    attached_files: str
    queued: str
    steers: str
    take_back: str
    taken_back: str
    asks: str
    reviews: str
    more_asks: str
    waits: str
    waits_one: str
    thinks: str
    answers: str
    requests: str
    one_runs: str
    many_run: str
    waits_here: str
    stopping: str
    stopped_hard: str
    lost: str
    back: str
    context: str
    offline: str
    nothing_runs: str
    nothing_said: str
    nothing_to_edit: str
    no_command: str
    no_model: str
    no_agent: str
    saved: str
    nothing_to_save: str
    no_file: str
    exported: str
    say_path: str
    still_runs: str
    still_waits: str
    still_waits_one: str
    in_memory: str
    gone: str
    moved_here: str
    moved_away: str
    press_quit: str
    go_on: str
    small: str
    copied: str
    erased: str
    model_now: str
    agent_now: str
    agent_new_only: str
    help: str
    help_more: str
    yes: str
    no: str
    close: str
    palette: str
    stop: str
    move: str
    fold: str
    copy: str
    to_box: str
    welcome: str


EN = AppTexts(
    keys={
        "send": "Send",
        "newline": "New line",
        "stop": "Stop the turn; again: its tools, too",
        "edit_last": "Edit your last message (in the empty box)",
        "steer": "Send into the turn that runs",
        "new": "New",
        "sessions": "Sessions",
        "gate": "Questions",
        "branches": "Branches",
        "pick": "Agent, model",
        "command_palette": "Commands",
        "help": "Keys",
        "quit": "Leave",
        "scroll_up": "Scroll up",
        "scroll_down": "Scroll down",
        "scroll_end": "To the end",
        "side": "Sessions beside it",
        "take_back": "Take the last waiting message back",
        "to_transcript": "Between the box and the conversation",
        "again": "Another answer",
        "files": "Files: what was changed, and back",
        "permissions": "Permissions",
        "servers": "MCP servers",
        "inbox": "Inbox",
        "usage": "Usage",
        "settings": "Settings",
        "compare": "Compare two answers",
        "export": "Export this session",
        "erase": "Erase this session",
        "block_up": "Block above",
        "block_down": "Block below",
        "activate": "Fold or unfold; answer what is asked",
        "copy_block": "Copy",
        "copy_message": "Copy the whole message",
        "revert": "Files back to before this step",
    },
    slash={
        "/help": "all keys and commands",
        "/new": "begin a new session",
        "/model": "NAME  go on with another model",
        "/agent": "NAME  begin with another agent",
        "/attach": "FILE  let a file go with the next message",
        "/detach": "drop what is attached",
        "/steer": "TEXT  say it into the turn that runs",
        "/again": "another answer",
        "/files": "what was changed, and back",
        "/revert": "what was changed, and back",
        "/save": "DIR  write the files of the last answer",
        "/export": "FILE  write this session to a file",
        "/quit": "leave",
    },
    groups={"talk": "Writing", "around": "Around", "look": "Looking"},
    new="New session",
    write="Write a message. Enter sends, Ctrl+J begins a new line, / lists commands.",
    write_new="What is it about? Enter sends, / lists commands.",
    editing="Edit: Enter asks again, Esc leaves it",
    steering="It goes into the turn that runs",
    attached="1 file goes with it: {names}",
    attached_files="{count} files go with it: {names}",
    queued="waits",
    steers="joins",
    take_back="Ctrl+T takes it back",
    taken_back="Taken back.",
    asks="{name} asks: Ctrl+G, or click here",
    reviews="{name} has a result to be read first: Ctrl+G, or click here",
    more_asks="and {count} more",
    waits="{count} wait",
    waits_one="1 waits",
    thinks="thinking",
    answers="answering",
    requests="asking the model",
    one_runs="{name} runs {seconds} s",
    many_run="{count} tools run {seconds} s",
    waits_here="waits for you",
    stopping="Stopping. Esc once more ends its tools, too.",
    stopped_hard="Its tools are ended, too.",
    lost="the server is not heard; trying again",
    back="The server is heard again.",
    context="context {percent}%",
    offline="offline demo",
    nothing_runs="Nothing runs here.",
    nothing_said="There is nothing to send yet.",
    nothing_to_edit="You have said nothing here yet.",
    no_command="There is no command {name}; there are: {known}",
    no_model="There is no model {name} here; there are: {known}",
    no_agent="There is no agent {name} here; there are: {known}",
    saved="Saved {path}",
    nothing_to_save="No answer here has brought a file yet.",
    no_file="{path} cannot be read: {why}",
    exported="Exported to {path}",
    say_path="Say where to: {command} FILE",
    still_runs="{count} still at work here; it goes on when you come back.",
    still_waits="{count} questions wait for you.",
    still_waits_one="1 question waits for you.",
    in_memory="in memory only · /export saves it",
    gone="This terminal kept its sessions in memory only: they are gone.",
    moved_here="The everturn that had the sessions has gone; this terminal has them now.",
    moved_away="Another everturn has the sessions now; this terminal is connected to it.",
    press_quit="Press Ctrl+Q to leave; Esc stops the turn.",
    go_on="Go on with: everturn chat --store … --session {session}",
    small="The window is too small: 40 columns and 12 lines are needed.",
    copied="Copied.",
    erased="This session was erased.",
    model_now="From here on: {name}",
    agent_now="The agent is {name}",
    agent_new_only="The agent of a session stays; Ctrl+N begins one with {name}.",
    help="Keys and commands",
    help_more="In a list: arrows and Enter. Everything can be clicked. Esc closes what lies on top.",
    yes="Yes",
    no="No",
    close="Esc closes",
    palette="What shall be done?",
    stop="Stop",
    move="Move",
    fold="Fold, answer",
    copy="Copy",
    to_box="Back to the box",
    welcome="Ctrl+O goes on with an earlier session · Ctrl+L chooses agent and model · /attach adds a file",
)
ZH = AppTexts(
    keys={
        "send": "发送",
        "newline": "换行",
        "stop": "停止；再按一次连工具也停止",
        "edit_last": "编辑上一条消息（输入框为空时）",
        "steer": "插入正在进行的回合",
        "new": "新会话",
        "sessions": "会话",
        "gate": "提问",
        "branches": "分支",
        "pick": "代理、模型",
        "command_palette": "命令",
        "help": "按键",
        "quit": "退出",
        "scroll_up": "向上滚动",
        "scroll_down": "向下滚动",
        "scroll_end": "到末尾",
        "side": "侧栏会话列表",
        "take_back": "撤回最后一条等待的消息",
        "to_transcript": "在输入框与对话之间切换",
        "again": "换一个回答",
        "files": "文件：改动与还原",
        "permissions": "权限",
        "servers": "MCP 服务器",
        "inbox": "收件箱",
        "usage": "用量",
        "settings": "设置",
        "compare": "比较两个回答",
        "export": "导出此会话",
        "erase": "清除此会话",
        "block_up": "上一块",
        "block_down": "下一块",
        "activate": "折叠或展开；答复提问",
        "copy_block": "复制",
        "copy_message": "复制整条消息",
        "revert": "把文件还原到此步之前",
    },
    slash={
        "/help": "所有按键和命令",
        "/new": "开始新会话",
        "/model": "名称  换一个模型继续",
        "/agent": "名称  用另一个代理开始",
        "/attach": "文件  随下一条消息发送",
        "/detach": "去掉附件",
        "/steer": "文本  插入正在进行的回合",
        "/again": "换一个回答",
        "/files": "改动与还原",
        "/revert": "改动与还原",
        "/save": "目录  保存上一个回答的文件",
        "/export": "文件  把此会话写入文件",
        "/quit": "退出",
    },
    groups={"talk": "书写", "around": "会话", "look": "查看"},
    new="新会话",
    write="写一条消息。回车发送，Ctrl+J 换行，/ 列出命令。",
    write_new="想聊什么？回车发送，/ 列出命令。",
    editing="编辑：回车重新提问，Esc 放弃",
    steering="将插入正在进行的回合",
    attached="附带 1 个文件：{names}",
    attached_files="附带 {count} 个文件：{names}",
    queued="等待",
    steers="插入",
    take_back="Ctrl+T 撤回",
    taken_back="已撤回。",
    asks="{name} 请求许可：按 Ctrl+G 或点击这里",
    reviews="{name} 的结果需要先过目：按 Ctrl+G 或点击这里",
    more_asks="另有 {count} 个",
    waits="{count} 个待办",
    waits_one="1 个待办",
    thinks="思考中",
    answers="回答中",
    requests="正在请求模型",
    one_runs="{name} 已运行 {seconds} 秒",
    many_run="{count} 个工具已运行 {seconds} 秒",
    waits_here="等待您",
    stopping="正在停止。再按一次 Esc 连工具也停止。",
    stopped_hard="工具也已停止。",
    lost="听不到服务器，正在重试",
    back="服务器又能听到了。",
    context="上下文 {percent}%",
    offline="离线演示",
    nothing_runs="这里没有正在进行的回合。",
    nothing_said="还没有可发送的内容。",
    nothing_to_edit="您在这里还没有说过话。",
    no_command="没有命令 {name}；有：{known}",
    no_model="这里没有模型 {name}；有：{known}",
    no_agent="这里没有代理 {name}；有：{known}",
    saved="已保存 {path}",
    nothing_to_save="这里还没有带文件的回答。",
    no_file="无法读取 {path}：{why}",
    exported="已导出到 {path}",
    say_path="请说明位置：{command} 文件",
    still_runs="这里还有 {count} 个在进行；您回来时会继续。",
    still_waits="有 {count} 个提问在等您。",
    still_waits_one="有 1 个提问在等您。",
    in_memory="仅在内存中 · /export 可保存",
    gone="此终端的会话只保存在内存中，现已丢失。",
    moved_here="原先持有会话的 everturn 已退出，现由此终端接管。",
    moved_away="会话现由另一个 everturn 持有，此终端已连接到它。",
    press_quit="按 Ctrl+Q 退出；Esc 停止回合。",
    go_on="继续：everturn chat --store … --session {session}",
    small="窗口太小：至少需要 40 列 12 行。",
    copied="已复制。",
    erased="此会话已被清除。",
    model_now="从现在起：{name}",
    agent_now="代理是 {name}",
    agent_new_only="会话的代理不变；Ctrl+N 用 {name} 开始新会话。",
    help="按键和命令",
    help_more="在列表中：方向键和回车。一切都可以点击。Esc 关闭最上层。",
    yes="是",
    no="否",
    close="Esc 关闭",
    palette="要做什么？",
    stop="停止",
    move="移动",
    fold="展开、答复",
    copy="复制",
    to_box="回到输入框",
    welcome="Ctrl+O 继续以前的会话 · Ctrl+L 选择代理和模型 · /attach 附上文件",
)


def get_app_texts(language: str) -> AppTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
