import asyncio
import io
import zipfile

from everturn import Chat, TextPart
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, call, calls, say

model = ScriptedModel(
    calls(call("read_document", find="deposit")),
    calls(call("read_document", line=412)),
    say("The deposit is two months' rent."),
)


def contract() -> bytes:
    """A Word document of 500 paragraphs."""
    texts = [f"Clause {number}: …" for number in range(1, 501)]
    texts[411] = "Clause 412: The deposit is two months' rent."
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", document)
    return file.getvalue()


async def main() -> None:
    async with Chat(model) as chat:
        file = await chat.attach(contract(), name="contract.docx")
        result = await chat.run([TextPart("How much is the deposit?"), file])
        for part in result.messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print("\n".join(part.output.text.split("\n")[:2]))
        print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
