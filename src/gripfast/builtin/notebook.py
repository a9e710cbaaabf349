"""A Jupyter notebook as text: its cells, their outputs, and the images in them."""

from __future__ import annotations

import base64
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from gripfast.builtin.images import picture
from gripfast.messages import ImagePart

MOST_PICTURES = 10
_PICTURE_BYTES = 5 * 1024 * 1024


class _CellOutput(BaseModel):
    output_type: str = ""
    text: str | list[str] = ""
    data: dict[str, Any] = Field(default_factory=dict[str, Any])
    ename: str = ""
    evalue: str = ""


class _Cell(BaseModel):
    cell_type: str = "code"
    source: str | list[str] = ""
    execution_count: int | None = None
    outputs: list[_CellOutput] = Field(default_factory=list[_CellOutput])


class _Notebook(BaseModel):
    cells: list[_Cell]


def notebook(data: bytes, most: int = MOST_PICTURES) -> tuple[str, list[ImagePart]] | None:
    """The cells as text, and at most so many images in their outputs; None if it is not a notebook."""
    try:
        cells = _Notebook.model_validate_json(data.removeprefix(b"\xef\xbb\xbf")).cells
    except ValidationError:
        return None
    pictures: list[ImagePart] = []
    lines: list[str] = []
    for number, cell in enumerate(cells, 1):
        run = f" [{cell.execution_count}]" if cell.execution_count is not None else ""
        lines += [f"<cell {number} {cell.cell_type}{run}>", *_joined(cell.source).splitlines()]
        for output in cell.outputs:
            lines += ["<output>", *_shown(output, pictures, most)]
    return "\n".join(lines), pictures


def _joined(text: Any) -> str:
    """A text of a notebook, which is a string or a list of lines; anything else is empty."""
    if isinstance(text, str):
        return text
    return "".join(map(str, cast("list[Any]", text))) if isinstance(text, list) else ""


def _shown(output: _CellOutput, pictures: list[ImagePart], most: int) -> list[str]:
    if output.ename:
        return [f"{output.ename}: {output.evalue}"]
    images = [(kind, value) for kind, value in output.data.items() if kind.startswith("image/")]
    shown = [_picture(kind, value, pictures, most) for kind, value in images]
    return [*shown, *_joined(output.text or output.data.get("text/plain")).splitlines()]


def _picture(kind: str, value: Any, pictures: list[ImagePart], most: int) -> str:
    try:
        data = base64.b64decode(_joined(value))
    except ValueError:
        data = b""
    found = picture(data)
    if found is None or len(pictures) >= most or len(data) > _PICTURE_BYTES:
        return f"[{kind}, not shown]"
    pictures.append(ImagePart(data, found.media_type, found.width, found.height))
    return f"[{kind} {found.width}x{found.height}: picture {len(pictures)} below]"
