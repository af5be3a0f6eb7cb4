/** Markdown corpus: texts as models write them, and hostile ones. */
export const CORPUS: Record<string, string> = {
  plain: "One line.\nAnother of the same paragraph.\n\nA second paragraph, with **bold**, *italic*, `code` and ~~gone~~.\n",
  titles: "# One\n\nText\n====\n\nMore\n----\n\n### Three ###\nright under it\n",
  lists: "- a\n- b\n  - c\n\n    with a paragraph\n- d\n\n\n1. one\n1. two\n\n1. three\n\nafter\n\n* x\n\n* y\n+ z\n",
  tasks: "- [ ] to do\n- [x] done\n  - [ ] below\n",
  code: "Before\n```python\nprint('x')\n\n# not a title\n- no list\n```\nAfter\n\n~~~\n```\nnested\n```\n~~~\n\n    indented\n\n    more\n\nend\n",
  open: "Text\n\n```js\nlet x = 1;\n\nlet y",
  fences: "````md\n```\ninner\n```\n````\n\n- item\n  ```sh\n  ls\n  ```\n- next\n",
  quote: "> one\n> two\nlazy\n\n> ```\n> code\n> ```\n> > deeper\n\nout\n",
  table: "A table:\n\n| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| 2 | **z** |\n\nafter | it\n\na | b\n--|--\n1 | 2\ntext\n",
  links: "See [one][1] and [two], <https://a.example>, www.b.example.\n\n[1]: https://c.example\n[two]: https://d.example 'T'\n\nEnd [one][1]\n",
  html: "<div>\n<b>x</b>\n\n</div>\n\n<!-- a\n\nb -->\n\ntext <i>in</i> line<br>next\n\n<script>\nalert(1)\n\n</script>\nafter\n",
  math: "Inline $a^2$ and \\(b\\), display:\n\n$$\n\\int_0^1 x\\,dx\n- 1\n$$\n\n\\[\nE = mc^2\n\\]\n\ncosts $5 and $6. $$x$$ in text\n\n$$\nopen for ever\n\nnext\n",
  rules: "a\n\n---\n\nb\n***\nc\n- - -\n",
  ends: "one\r\ntwo\r\n\r\n- a\r\n- b\rthree\n",
  chinese: "## 标题\n\n这是**粗体**，还有`代码`。\n\n1. 第一\n2. 第二\n\n| 列 | 行 |\n|--|--|\n| 甲 | 乙 |\n",
};
