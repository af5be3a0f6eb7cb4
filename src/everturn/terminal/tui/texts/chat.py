"""Texts of the transcript, in English and Chinese."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from typing import Literal

from msgspec import Struct


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
    # details of a call
    unknown_why: str
    withheld_why: str
    waiting_why: str
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
    step: str
    closing: str
    tokens_in: str
    tokens_out: str
    cached: str
    reasoning: str
    estimated: str
    context: str
    restarted: str
    length: str
    content_filter: str
    refusal: str
    error: str
    other: str
    stopped_here: str
    file: str
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
    # state and ending of a turn
    preparing: str
    composing: str
    calling: str
    asks: str
    parked: str
    tools_running: str
    for_client: str
    deciding: str
    finalizing: str
    step_restarted: str
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


EN = ChatTexts(
    key_up="Up",
    key_down="Down",
    key_fold="Fold",
    key_copy="Copy",
    key_copy_all="Copy all",
    key_end="Newest",
    copied="Copied.",
    new_below="more below",
    writing="being written",
    pending="to run",
    never="never ran",
    asking="asks",
    running="running",
    waiting="suspended",
    reviewing="to be read",
    completed="done",
    failed="failed",
    denied="denied",
    withheld="withheld",
    cancelled="cancelled",
    outcome_unknown="outcome unknown",
    unknown_why="It may or may not have happened. It was not repeated.",
    withheld_why="It did run. Its result was not given to the model.",
    waiting_why="It waits for an answer or another turn, and goes on by itself.",
    out_why="The turn went on without it. The tool still runs; what it brings will be shown here.",
    incomplete="It did not run: a limit of this turn was reached.",
    repaired="The model asked for {asked}; {ran} ran.",
    edited="A person changed the arguments",
    changed="The arguments were changed before it ran",
    asked="asked",
    used="used",
    arguments="Arguments",
    change="What it changes",
    progress="Progress",
    result="Result",
    late="Late result",
    late_why="It came after the call was cancelled. The model has not read it as the result.",
    nothing="no text",
    excerpt="This is an excerpt; the whole is kept.",
    untrusted="untrusted text",
    private="private values held back",
    sensitive="made from private data",
    redacted="redacted by a person",
    code="code {code}",
    by_rule="allowed by a rule",
    by_person="allowed at a gate",
    why="why",
    below="a turn below this one",
    open_gate="This waits for an answer: Enter opens it.",
    open_below="A turn below this one asks: Enter opens it.",
    more_lines="1 more line|{n} more lines",
    function="server",
    mcp="MCP {name}",
    client="client",
    files="files",
    sandbox="sandbox {name}",
    web="web",
    agent="another agent",
    builtin="everturn",
    you="You",
    thinking="Thinking",
    thought="Thought, 1 character|Thought, {n} characters",
    sealed="Thought; the provider keeps what it was to itself",
    step="step {n}",
    closing="last step, without tools",
    tokens_in="{n} in",
    tokens_out="{n} out",
    cached="{n} cached",
    reasoning="{n} reasoning",
    estimated="estimated",
    context="context {share}",
    restarted="The connection to the model broke, and the step began again.|"
    "The connection to the model broke, and the step began again ({n} times).",
    length="The answer was cut off: the model may not write more at once. Ask it to go on.",
    content_filter="The provider's content filter stopped the answer.",
    refusal="The model declined to answer.",
    error="The model's stream broke off here.",
    other="The model stopped for a reason it did not name.",
    stopped_here="Stopped here.",
    file="file",
    files_changed="1 file changed|{n} files changed",
    added="new",
    deleted="gone",
    revert="r reverts",
    told="{by} told the model",
    notice_late="A late result was handed to the model",
    notice_max_steps="The steps are used up: the model was asked to conclude",
    notice_limit="A limit is reached: the model was asked to conclude",
    notice_loop="A loop was stopped",
    notice_compaction="Earlier messages were summed up to make room",
    preparing="Getting ready",
    composing="Writing",
    calling="Preparing a call",
    asks="One question waits for an answer|{n} questions wait for an answer",
    parked="Waiting for something from outside",
    tools_running="One tool is running|{n} tools are running",
    for_client="Waiting for a browser or an app to do its part",
    deciding="Going on",
    finalizing="Finishing",
    step_restarted="The connection to the model broke; it starts again",
    stopped="Stopped.",
    stopped_hard="Stopped, and its tools were ended.",
    tools_out="One tool still runs. Its result will be attached to its call when it comes.|"
    "{n} tools still run. Their results will be attached to their calls when they come.",
    late_came="One result came after the end; it stands at its call.|"
    "{n} results came after the end; they stand at their calls.",
    turn_failed="The turn failed",
    try_again="Ask again to try once more.",
    next_context="Ctrl+N begins a new session, Ctrl+B edits or deletes messages, Ctrl+L chooses a model with a larger context.",
    next_model="Ctrl+L chooses another model.",
    deadline="It had its time",
    limit="A limit of {scope} is reached",
    scope_turn="this turn",
    scope_session="this conversation",
    scope_tenant="all conversations",
    scope_above="the parent turn",
    max_steps="The turn has had its steps; the last one was asked to conclude without tools.",
    loop="A loop was stopped: the same calls came round again and again.",
    reports="A plugin reports a problem",
    queued="waits to be sent",
    next_up="next",
    steers="joins at the next step",
    queued_files="1 file|{n} files",
)

ZH = ChatTexts(
    key_up="上移",
    key_down="下移",
    key_fold="展开/折叠",
    key_copy="复制",
    key_copy_all="复制全部",
    key_end="最新",
    copied="已复制。",
    new_below="下方有新内容",
    writing="正在书写",
    pending="等待运行",
    never="未曾运行",
    asking="等待批准",
    running="运行中",
    waiting="已搁置",
    reviewing="结果待审阅",
    completed="完成",
    failed="失败",
    denied="已拒绝",
    withheld="结果未发送",
    cancelled="已取消",
    outcome_unknown="结果未知",
    unknown_why="它可能发生了，也可能没有。没有重复执行。",
    withheld_why="它确实运行了，但结果没有交给模型。",
    waiting_why="它在等待回答或另一轮，之后会自行继续。",
    out_why="本轮已不再等它。工具仍在运行，结果到达后会显示在这里。",
    incomplete="没有运行：本轮已达到上限。",
    repaired="模型请求的是 {asked}，实际运行的是 {ran}。",
    edited="有人修改了参数",
    changed="运行前参数被更改",
    asked="请求",
    used="实际",
    arguments="参数",
    change="更改内容",
    progress="进度",
    result="结果",
    late="迟到的结果",
    late_why="在调用取消之后到达。模型没有将其作为结果读取。",
    nothing="没有文本",
    excerpt="这是节选，全文已保存。",
    untrusted="不可信文本",
    private="私有值已隐去",
    sensitive="源自私有数据",
    redacted="已被人遮盖",
    code="代码 {code}",
    by_rule="由规则允许",
    by_person="经人批准",
    why="原因",
    below="子任务",
    open_gate="等待答复：按 Enter 打开。",
    open_below="子任务在提问：按 Enter 打开。",
    more_lines="还有 {n} 行|还有 {n} 行",
    function="服务器",
    mcp="MCP {name}",
    client="客户端",
    files="文件",
    sandbox="沙箱 {name}",
    web="网络",
    agent="另一个代理",
    builtin="everturn",
    you="您",
    thinking="思考中",
    thought="思考过程，{n} 个字符",
    sealed="思考过程（内容由模型提供方保密）",
    step="第 {n} 步",
    closing="最后一步，不再使用工具",
    tokens_in="输入 {n}",
    tokens_out="输出 {n}",
    cached="缓存 {n}",
    reasoning="思考 {n}",
    estimated="估算",
    context="上下文 {share}",
    restarted="与模型的连接中断，此步骤已重新开始。|与模型的连接中断，此步骤已重新开始（{n} 次）。",
    length="回答被截断：已达到模型允许的最大长度。可以请它继续。",
    content_filter="提供方的内容过滤器中止了回答。",
    refusal="模型拒绝回答。",
    error="模型的输出在此中断。",
    other="模型未说明原因就停止了。",
    stopped_here="在此停止。",
    file="文件",
    files_changed="{n} 个文件已更改|{n} 个文件已更改",
    added="新建",
    deleted="删除",
    revert="按 r 还原",
    told="{by} 告知模型",
    notice_late="迟到的结果已交给模型",
    notice_max_steps="步数已用完：已请模型总结",
    notice_limit="已达到限额：已请模型总结",
    notice_loop="循环已被制止",
    notice_compaction="较早的消息已被压缩以腾出空间",
    preparing="准备中",
    composing="书写中",
    calling="正在准备调用",
    asks="有 {n} 个问题等待答复|有 {n} 个问题等待答复",
    parked="等待外部事件",
    tools_running="{n} 个工具正在运行|{n} 个工具正在运行",
    for_client="等待浏览器或应用完成它的部分",
    deciding="继续中",
    finalizing="收尾中",
    step_restarted="与模型的连接中断，正在重新开始",
    stopped="已停止。",
    stopped_hard="已停止，其工具也已终止。",
    tools_out="仍有 {n} 个工具在运行。结果到达后会附在对应的调用上。|"
    "仍有 {n} 个工具在运行。结果到达后会附在对应的调用上。",
    late_came="有 {n} 个结果在结束之后到达，已附在对应的调用上。|有 {n} 个结果在结束之后到达，已附在对应的调用上。",
    turn_failed="这一轮失败了",
    try_again="再次提问即可重试。",
    next_context="Ctrl+N 开始新会话，Ctrl+B 编辑或删除消息，Ctrl+L 选择上下文更长的模型。",
    next_model="Ctrl+L 选择另一个模型。",
    deadline="时间已用完",
    limit="已达到{scope}的限额",
    scope_turn="本轮",
    scope_session="本对话",
    scope_tenant="全部对话",
    scope_above="上级轮次",
    max_steps="这一轮的步数已用完；最后一步被要求不用工具直接总结。",
    loop="循环已被制止：同样的调用反复出现。",
    reports="插件报告了问题",
    queued="等待发送",
    next_up="下一条",
    steers="将在下一步加入",
    queued_files="{n} 个文件|{n} 个文件",
)


def get_chat_texts(language: Literal["en", "zh"]) -> ChatTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN


def pluralize(forms: str, number: int) -> str:
    """Return the singular or the plural of `one|many`, with the number."""
    singular, _, plural = forms.partition("|")
    return (singular if number == 1 else plural or singular).replace("{n}", f"{number:,}")
