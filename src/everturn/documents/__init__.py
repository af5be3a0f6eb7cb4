"""Documents: reads the text of PDF and Office files, in a process that can do nothing else and can be killed.

- `extraction`: starts the process, and takes what it has read until it ends or its time is over
- `worker`: the program of that process; it gives up its rights before it reads a byte of the file
- `office_text`: text of Word, PowerPoint and OpenDocument files, with the standard library
- `workbook_text`: text of Excel files
- `text_lines`: the text of such files while it is read: lines, and the cells of table rows
- `office_xml`: the parts of such files, with limits for hostile ones
- `pdf_text`: text of PDF files, with pypdf
"""
