"""Texts of the gate dialogs: titles, keys, panels, and messages after an answer."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


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
    hidden_one: str
    hidden_many: str
    mixed: str
    foreign: str
    styled: str
    two_ways: str
    stores_one: str
    stores_many: str
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
    k_failed: str
    k_enter: str
    # Panels
    always_one: str
    always_many: str
    loop_always: str
    here: str
    everywhere: str
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
    help: tuple[tuple[str, str], ...]
    help_result: tuple[tuple[str, str], ...]
    help_ask: tuple[tuple[str, str], ...]


EN: Final = GateTexts(
    call="{} asks to run",
    egress="{} would send something out",
    loop="{} asks to run once more",
    manual="{} is for you to do",
    result="Read what {} brought",
    failed_result="Read why {} failed",
    question="A question for you",
    form="{} asks you something",
    client="{} waits for a program",
    because="Why",
    origin="Tool",
    read_only="only reads",
    idempotent="writes; a repeat changes nothing more",
    at_most_once="acts, once for each call",
    where="In",
    below="asked by a sub-agent run",
    told="To",
    claimed="{} has taken this on",
    egress_why="It runs after untrusted text and private data were read here. Its arguments are sent outside.",
    client_why="A connected program does this and says what came of it. You can only deny it.",
    no_tool="There is no tool of this name any more, so it would fail.",
    exactly="With exactly these arguments",
    edited="With your changes, exactly these arguments",
    nothing="Without arguments",
    ran_with="It ran with",
    ran_plain="It ran without arguments",
    asks_this="It asks",
    your_answer="Your answer, exactly this",
    preview="This is what it would do",
    preview_edited=(
        "What it would do was shown for the arguments as they were. With your changes it may do something else."
    ),
    hidden_one=r"1 character cannot be seen, and is written out, as \u202e or \x1b",
    hidden_many=r"{} characters cannot be seen, and are written out, as \u202e or \x1b",
    mixed="{} mixes letters of several alphabets",
    foreign="{} is not written in the letters it looks like",
    styled="{} is written in disguised letters",
    two_ways="Some of it runs from right to left: a terminal may show it in another order",
    stores_one="Always would store this rule",
    stores_many="Always would store one of these rules",
    more="↓ 1 more line below|↓ {n} more lines below",
    unread="1 line was not shown yet. PgDn reads on, End goes to the end; then it can be allowed.|"
    "{n} lines were not shown yet. PgDn reads on, End goes to the end; then it can be allowed.",
    would_read="The model would read exactly this",
    will_read="With your changes, the model will read exactly this",
    empty="The result is empty.",
    excerpt="This is an excerpt. Once it is sent, the model may read the rest as well.",
    drops="Attachments and data beside the text are dropped, for something was taken out.",
    attached="And a file: {}",
    untrusted="It was written by somebody you did not ask.",
    private="Private values are not in it: placeholders are, and the model sees no more than these.",
    select_first="Select something first: Shift and the arrows, or the mouse.",
    taken="Taken out: {}",
    redacted="What it brought is shown to approvers only, until one of them lets it through.",
    edit_result="What the model will read",
    written_out="What cannot be seen was written out, and goes to the model so.",
    k_once="allow once",
    k_run_edited="run this, once",
    k_send_this="send this",
    k_always="always …",
    k_deny="deny …",
    k_deny_all="deny all …",
    k_edit="edit …",
    k_edit_again="edit again …",
    k_undo="undo",
    k_did="I did it …",
    k_let="let the tool do it",
    k_send="send",
    k_redact="take out",
    k_redact_all="wherever it stands",
    k_withhold="withhold …",
    k_yes="yes",
    k_no="no …",
    k_words="in words …",
    k_fill="fill in …",
    k_fill_again="fill in again …",
    k_help="help",
    k_later="later",
    k_back="back",
    k_store="allow, and store this rule",
    k_choose="choose",
    k_where="where",
    k_long="how long",
    k_next="next field",
    k_show="look at it again",
    k_json="as JSON",
    k_form="as a form",
    k_others="all others, too",
    k_failed="it did not work",
    k_enter="hand in",
    always_one="Allow this from now on. Exactly this rule is stored:",
    always_many="Allow this from now on. Exactly one of these rules is stored:",
    loop_always="This lets the same calls repeat; each is still judged by the rules.",
    here="in this conversation",
    everywhere="everywhere, in all conversations",
    only_owners="everywhere takes the role of an owner",
    session_only="a command is allowed in this conversation only, to the user who asked",
    forever="until it is revoked",
    hour="for one hour",
    day="for one day",
    week="for one week",
    reason="Why not? The model reads this; you can leave it empty.",
    reason_form="Why not? The tool is told this; you can leave it empty.",
    others="Also deny everything else that is asked in this conversation",
    hand_title="What came of it? The model reads this as the result.",
    failed="It did not work",
    answer="Your answer",
    edit_title="Run it with these arguments instead. They are shown again before anything runs.",
    fill_title="Your answer. It is shown again before it is sent.",
    as_json="as JSON",
    no_json="That is not JSON. Fix it, or press Esc to go back.",
    no_object='Arguments are a JSON object, such as {"name": 1}.',
    unchanged="Nothing is changed yet.",
    needs_text="Type what came of it first.",
    optional="may be left out",
    left_out="(left out)",
    yes="yes",
    no="no",
    cannot="Answering this takes the role of an approver. You can see it, and not answer it.",
    cannot_member="Viewers cannot answer.",
    sending="Sending …",
    stored="Stored, {}: {}",
    answered_otherwise="Somebody else answered this in the meantime.",
    answered_by="{} answered this in the meantime.",
    gate_closed="This is not asked any more: its turn has ended.",
    gate_expired="The time to answer this is over.",
    unknown_gate="This is not asked any more.",
    hash_mismatch="What is asked has changed. Look at it again before you answer.",
    away="The server could not be reached, and nobody knows whether it got this. The same answer can be given again: it counts once.",
    other="Not taken: {}",
    left="{} left to answer",
    expired="its time is over",
    days="1 day|{n} days",
    hours="{} h",
    help=(
        ("y", "run it once, with exactly what is shown"),
        ("a", "run it, and store a rule; what fits it is not asked about again"),
        ("n", "do not run it; the model reads the reason, if you give one"),
        ("N", "the same, and for all that asks in this conversation now"),
        ("e", "change the arguments; they are shown again before anything runs"),
        ("r", "you have done it yourself; nothing is run, and what you say is the result"),
        ("Esc", "later: nothing is answered, and it goes on waiting"),
        ("Enter", "never allows anything"),
    ),
    help_result=(
        ("y", "let the model read exactly what is shown"),
        ("r", "take out what is selected: Shift and the arrows, or the mouse, select"),
        ("R", "take it out wherever it stands"),
        ("u", "undo"),
        ("e", "write it differently"),
        ("n", "keep it from the model, which reads the reason and that the call did run"),
        ("Esc", "later: nothing is answered, and it goes on waiting"),
    ),
    help_ask=(
        ("f", "fill the form in; your answer is shown again before it is sent"),
        ("y", "yes, or: send exactly what is shown"),
        ("t", "yes, and the words that you type"),
        ("n", "do not answer; the reason is passed on, if you give one"),
        ("Esc", "later: nothing is answered, and it goes on waiting"),
    ),
)
ZH: Final = GateTexts(
    call="{} 请求运行",
    egress="{} 将把内容发送到外部",
    loop="{} 请求再次运行",
    manual="{} 需要您亲自完成",
    result="请审阅 {} 的结果",
    failed_result="请审阅 {} 失败的原因",
    question="有一个问题",
    form="{} 有事要问您",
    client="{} 正在等待客户端程序",
    because="原因",
    origin="工具",
    read_only="只读",
    idempotent="会写入；重复执行不再改变",
    at_most_once="每次调用执行一次",
    where="位于",
    below="由子任务提出",
    told="交给",
    claimed="{} 已接手",
    egress_why="此前已读取不可信文本和私有数据，而它收到的内容会离开本系统。",
    client_why="由已连接的程序执行并回报结果。您只能拒绝。",
    no_tool="已没有这个名称的工具，调用会失败。",
    exactly="参数如下，一字不差",
    edited="修改后的参数如下，一字不差",
    nothing="没有参数",
    ran_with="运行时的参数",
    ran_plain="运行时没有参数",
    asks_this="问题",
    your_answer="您的回答如下，一字不差",
    preview="它将会这样做",
    preview_edited="此预览基于原参数。修改后效果可能不同。",
    hidden_one=r"有 1 个看不见的字符，已写出，如 \u202e 或 \x1b",
    hidden_many=r"有 {} 个看不见的字符，已写出，如 \u202e 或 \x1b",
    mixed="{} 混用了多种字母",
    foreign="{} 并非由它看上去的字母写成",
    styled="{} 使用了伪装的字母",
    two_ways="部分内容从右向左书写：终端显示的顺序可能不同",
    stores_one="“始终允许”将保存这条规则",
    stores_many="“始终允许”将保存其中一条规则",
    more="↓ 下面还有 {n} 行",
    unread="还有 {n} 行尚未显示。PgDn 继续阅读，End 到末尾；之后才能允许。",
    would_read="模型将一字不差地读到以下内容",
    will_read="修改后，模型将一字不差地读到以下内容",
    empty="结果为空。",
    excerpt="这是节选。发送后，模型也可能读到其余部分。",
    drops="已遮盖部分内容，因此附件与文本之外的数据都会去掉。",
    attached="还有一个文件：{}",
    untrusted="内容出自您未曾询问的人。",
    private="其中没有私有值：只有替代符，模型也只能看到这些。",
    select_first="请先选中内容：Shift 加方向键，或用鼠标。",
    taken="已遮盖：{} 处",
    redacted="在审批者放行之前，结果仅对审批者可见。",
    edit_result="模型将读到的内容",
    written_out="看不见的字符已写出，并将如此发送给模型。",
    k_once="允许一次",
    k_run_edited="以此运行一次",
    k_send_this="发送",
    k_always="始终允许…",
    k_deny="拒绝…",
    k_deny_all="全部拒绝…",
    k_edit="修改…",
    k_edit_again="再次修改…",
    k_undo="撤销",
    k_did="我已手动完成…",
    k_let="让工具来做",
    k_send="发送",
    k_redact="遮盖所选",
    k_redact_all="遮盖所有相同",
    k_withhold="不发送…",
    k_yes="是",
    k_no="否…",
    k_words="用文字回答…",
    k_fill="填写…",
    k_fill_again="重新填写…",
    k_help="帮助",
    k_later="稍后",
    k_back="返回",
    k_store="允许并保存此规则",
    k_choose="选择",
    k_where="范围",
    k_long="有效期",
    k_next="下一项",
    k_show="再看一遍",
    k_json="以 JSON 填写",
    k_form="以表单填写",
    k_others="其他也拒绝",
    k_failed="没有成功",
    k_enter="提交",
    always_one="从现在起允许。将保存的规则正是：",
    always_many="从现在起允许。将保存的规则正是其中一条：",
    loop_always="这会允许相同的调用重复出现；每次仍按规则判断。",
    here="仅本对话",
    everywhere="所有对话",
    only_owners="所有对话需要所有者角色",
    session_only="命令只能在本对话中、为提出请求的用户允许",
    forever="直到撤销",
    hour="一小时",
    day="一天",
    week="一周",
    reason="为什么拒绝？模型会读到；可以留空。",
    reason_form="为什么拒绝？工具会得知；可以留空。",
    others="同时拒绝本对话中其他所有待批准的调用",
    hand_title="结果是什么？模型会将其作为工具结果读取。",
    failed="没有成功",
    answer="您的回答",
    edit_title="改用以下参数运行。运行之前会再次显示。",
    fill_title="您的回答。发送之前会再次显示。",
    as_json="以 JSON",
    no_json="这不是 JSON。请改正，或按 Esc 返回。",
    no_object='参数应为 JSON 对象，如 {"name": 1}。',
    unchanged="尚未修改。",
    needs_text="请先写下结果。",
    optional="可以留空",
    left_out="（留空）",
    yes="是",
    no="否",
    cannot="回答此项需要审批者角色。您可以查看，但不能回答。",
    cannot_member="查看者不能回答。",
    sending="正在发送…",
    stored="已保存（{}）：{}",
    answered_otherwise="其他人已先回答。",
    answered_by="{} 已先回答。",
    gate_closed="已不再询问：该轮已结束。",
    gate_expired="回答时间已过。",
    unknown_gate="已不再询问。",
    hash_mismatch="询问的内容已变化，请重新查看后再回答。",
    away="无法连接服务器，不知道它是否已收到。可以再次给出同样的回答：只算一次。",
    other="未被接受：{}",
    left="还剩 {}",
    expired="已超时",
    days="{n} 天",
    hours="{} 小时",
    help=(
        ("y", "按所示内容运行一次"),
        ("a", "运行并保存规则；符合规则的调用不再询问"),
        ("n", "不运行；若给出理由，模型会读到"),
        ("N", "同上，并拒绝本对话中现在的所有询问"),
        ("e", "修改参数；运行之前会再次显示"),
        ("r", "您已亲自完成；不会运行，您写的就是结果"),
        ("Esc", "稍后：不作回答，继续等待"),
        ("Enter", "从不表示允许"),
    ),
    help_result=(
        ("y", "让模型读到所示内容"),
        ("r", "遮盖所选内容：Shift 加方向键，或用鼠标选择"),
        ("R", "遮盖所有相同的文字"),
        ("u", "撤销"),
        ("e", "改写"),
        ("n", "不让模型读到；模型会读到理由，并得知调用已运行"),
        ("Esc", "稍后：不作回答，继续等待"),
    ),
    help_ask=(
        ("f", "填写表单；发送之前会再次显示"),
        ("y", "是，或：发送所示内容"),
        ("t", "是，并附上您写的文字"),
        ("n", "不回答；若给出理由，会转告"),
        ("Esc", "稍后：不作回答，继续等待"),
    ),
)


def get_gate_texts(language: Literal["en", "zh"]) -> GateTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
