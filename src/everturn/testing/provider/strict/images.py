"""OpenAI Images validation: refuses the requests that it refuses, with its messages. The prefix of a model's name
decides.

- gpt-image-…: answers in base64 only, and has no `response_format`
- dall-e-2: short prompts, small squares, and edits of one PNG
- dall-e-3: one image at a time, and no edits
"""

from __future__ import annotations

from typing import Any

from everturn.testing.provider.faults import Refused, is_json_integer
from everturn.testing.provider.media.png import SIGNATURE
from everturn.testing.provider.media.requests import MediaRequest, Upload
from everturn.testing.provider.strict.openai import check_fields, missing, too_long, wrong_type, wrong_value

_COMMON = frozenset("model n prompt quality size stream user".split())
_NEW = frozenset("background moderation output_compression output_format partial_images".split())
_GPT = _COMMON | _NEW
_DALLE = _COMMON | {"response_format", "style"}
_FILES = frozenset("image mask input_fidelity".split())
_SIZES = {
    "gpt-image": ("1024x1024", "1024x1536", "1536x1024", "auto"),
    "dall-e-2": ("256x256", "512x512", "1024x1024"),
    "dall-e-3": ("1024x1024", "1024x1792", "1792x1024"),
}
_CHOICES = {
    "background": ("transparent", "opaque", "auto"),
    "output_format": ("png", "jpeg", "webp"),
    "response_format": ("url", "b64_json"),
    "input_fidelity": ("high", "low"),
}
_QUALITIES = {"gpt-image": ("low", "medium", "high", "auto"), "dall-e-2": ("standard",), "dall-e-3": ("standard", "hd")}
_PROMPTS = {"gpt-image": 32_000, "dall-e-2": 1_000, "dall-e-3": 4_000}
_MOST = 10
_MOST_FILES = 16
_PNG_SIZE = 4 * 1024 * 1024


def family_of(model: str) -> str:
    """Which rules apply to a model: those of its family, or "" for the common ones."""
    return next((family for family in _SIZES if model.startswith(family)), "")


def check_image(request: MediaRequest) -> None:
    """Raise `Refused` for an image request that the real one would refuse."""
    family = family_of(request.body["model"])
    check_fields(request.body, {"gpt-image": _GPT, "": _GPT | _DALLE}.get(family, _DALLE))
    _check_options(request.body, family)


def check_edit(request: MediaRequest) -> None:
    """Raise `Refused` for an edit that the real one would refuse."""
    body = request.body
    family = family_of(body["model"])
    if family == "dall-e-3":
        raise Refused(f"Invalid value: '{body['model']}'. Value must be 'dall-e-2'.", "model", "invalid_value")
    check_fields(body, {"gpt-image": _GPT, "": _GPT | _DALLE}.get(family, _DALLE) | _FILES)
    _check_options(body, family)
    check_pictures(request, family)


def _check_options(body: dict[str, Any], family: str) -> None:
    check_prompt(body, family)
    check_count(body, family)
    check_size(body, family)
    choices = {**_CHOICES, "quality": _QUALITIES[family]} if family else _CHOICES
    for name, supported in choices.items():
        if body.get(name) is not None and body[name] not in supported:
            raise wrong_value(name, body[name], supported)
    if body.get("background") == "transparent" and body.get("output_format") == "jpeg":
        text = "Transparent background is not supported for JPEG output format."
        raise Refused(text, "background", "invalid_value")
    if body.get("stream") not in (None, False, "false"):
        # Our own rule.
        raise Refused("This provider sends pictures whole: 'stream' must be false.", "stream", "invalid_value")


def check_prompt(body: dict[str, Any], family: str) -> None:
    """There is a prompt."""
    prompt = body.get("prompt")
    if prompt is None:
        raise missing("prompt")
    if not isinstance(prompt, str):
        raise wrong_type("prompt", "a string", prompt)
    if not prompt:
        text = (
            "Invalid 'prompt': empty string. Expected a string with minimum length 1, but got an empty string instead."
        )
        raise Refused(text, "prompt", "empty_string")
    limit = _PROMPTS.get(family, _PROMPTS["gpt-image"])
    if len(prompt) > limit:
        raise too_long("prompt", limit, prompt)


def count_of(body: dict[str, Any]) -> int | None:
    """The number of requested images; None if that is not a number. In a form it is a string."""
    count = body.get("n")
    if count is None:
        return 1
    if isinstance(count, str) and count.lstrip("-").isdecimal():
        return int(count)
    return count if is_json_integer(count) else None


def check_count(body: dict[str, Any], family: str) -> None:
    """The number of images is small."""
    count = count_of(body)
    if count is None:
        raise wrong_type("n", "an integer", body["n"])
    if count < 1:
        text = f"Invalid 'n': integer below minimum value. Expected a value >= 1, but got {count} instead."
        raise Refused(text, "n", "integer_below_min_value")
    if count > _MOST:
        text = f"Invalid 'n': integer above maximum value. Expected a value <= {_MOST}, but got {count} instead."
        raise Refused(text, "n", "integer_above_max_value")
    if family == "dall-e-3" and count != 1:
        raise Refused("You must provide n=1 for this model.", "n", "invalid_n")


def check_size(body: dict[str, Any], family: str) -> None:
    """A family has a few sizes; others accept any width and height."""
    size = body.get("size")
    if size is None:
        return
    if not isinstance(size, str):
        raise wrong_type("size", "a string", size)
    if family:
        if size not in _SIZES[family]:
            raise wrong_value("size", size, _SIZES[family])
        return
    width, _, height = size.partition("x")
    if size != "auto" and not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise wrong_value("size", size, _SIZES["gpt-image"])


# files ------------------------------------------------------------------------------------------------


def check_pictures(request: MediaRequest, family: str) -> None:
    """There is an image to edit, and each has the type that it declares."""
    if "image" not in request.body:
        raise missing("image")
    pictures = request.files_in("image")
    sent = request.body["image"]
    if len(pictures) != (len(sent) if isinstance(sent, list) else 1):  # pyright: ignore[reportUnknownArgumentType]
        text = "Invalid type for 'image': expected one of an array of files or file, but got a string instead."
        raise Refused(text, "image", "invalid_type")
    most = 1 if family == "dall-e-2" else _MOST_FILES
    if len(pictures) > most:
        text = (
            f"Invalid 'image': array too long. Expected an array with maximum length {most}, "
            f"but got an array with length {len(pictures)} instead."
        )
        raise Refused(text, "image", "array_above_max_length")
    kinds = ("image/png",) if family == "dall-e-2" else ("image/jpeg", "image/png", "image/webp")
    for at, picture in enumerate(pictures):
        _check_picture(picture, at, kinds)
    if family == "dall-e-2" and len(pictures[0].data) >= _PNG_SIZE:
        raise Refused("Uploaded image must be a PNG and less than 4 MB.", "image")
    if "mask" in request.body:
        masks = request.files_in("mask")
        if not masks or kind_of(masks[0].data) != "image/png":
            raise Refused("Invalid mask image format - mask must be a PNG.", "mask", "invalid_image_file")


def _check_picture(picture: Upload, at: int, kinds: tuple[str, ...]) -> None:
    kind = picture.content_type.partition(";")[0].strip().lower() or "application/octet-stream"
    if kind not in kinds:
        listed = [f"'{allowed}'" for allowed in kinds]
        names = ", ".join(listed[:-1]) + f", and {listed[-1]}" if len(listed) > 1 else listed[0]
        text = f"Invalid file '{picture.param}': unsupported mimetype ('{kind}'). Supported file formats are {names}."
        raise Refused(text, picture.param, "unsupported_file_mimetype")
    if kind_of(picture.data) not in kinds:
        text = f"Invalid image file or mode for image {at + 1}, please check your image file."
        raise Refused(text, picture.param, "invalid_image_file")


def kind_of(data: bytes) -> str:
    """The type of a file by its first bytes, whatever its name says."""
    if data.startswith(SIGNATURE):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""
