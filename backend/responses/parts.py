"""Content parts of messages and of tool outputs.

Parts of the *input* stay plain dicts (validated, unknown keys kept): existing code reads `part["text"]`. Parts of a generated
message are objects.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Discriminator, Field, Tag, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from backend.responses.base import KEEP_UNKNOWN, TaggedModel, text_or_list


@with_config(KEEP_UNKNOWN)
class NeMoGymResponseInputText(TypedDict):
    text: str
    type: Literal["input_text"]


@with_config(KEEP_UNKNOWN)
class NeMoGymResponseInputImage(TypedDict):
    type: Literal["input_image"]
    detail: NotRequired[Literal["low", "high", "auto", "original"] | None]
    image_url: NotRequired[str | None]
    file_id: NotRequired[str | None]


@with_config(KEEP_UNKNOWN)
class NeMoGymResponseInputVideo(TypedDict):
    """A video by exactly one of two keys, each a URL or `{"url": …}`."""

    type: Literal["input_video"]
    video_url: NotRequired[str | dict[str, Any] | None]
    video: NotRequired[str | dict[str, Any] | None]


@with_config(KEEP_UNKNOWN)
class NeMoGymResponseOtherPart(TypedDict):
    """Any other part, such as a file, or generated text that is sent back as history."""

    type: str


def video_url_of(part: dict[str, Any]) -> str | None:
    """The URL of an `input_video` part; None unless exactly one of its two keys holds a non-empty one."""
    given = [part[key] for key in ("video_url", "video") if part.get(key) is not None]
    if len(given) != 1:
        return None
    url = given[0].get("url") if isinstance(given[0], dict) else given[0]
    return url if isinstance(url, str) and url else None


def _with_one_video(part: Any) -> Any:
    if video_url_of(part) is None:
        raise PydanticCustomError(
            "input_video", "input_video needs exactly one of `video_url` and `video`: a non-empty string or an object with `url`"
        )
    return part


_INPUT_PART_TYPES = frozenset({"input_text", "input_image", "input_video"})


def _input_part_kind(part: Any) -> str | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    return kind if isinstance(kind, str) and kind in _INPUT_PART_TYPES else "other"


NeMoGymResponseInputPart = Annotated[
    Annotated[NeMoGymResponseInputText, Tag("input_text")]
    | Annotated[NeMoGymResponseInputImage, Tag("input_image")]
    | Annotated[NeMoGymResponseInputVideo, AfterValidator(_with_one_video), Tag("input_video")]
    | Annotated[NeMoGymResponseOtherPart, Tag("other")],
    Discriminator(
        _input_part_kind, custom_error_type="content_part", custom_error_message="a content part must be an object with a `type`"
    ),
]
NeMoGymInputContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[NeMoGymResponseInputPart], Tag("list")], Discriminator(text_or_list)
]


class NeMoGymResponseOutputText(TaggedModel):
    annotations: list[Any]
    text: str
    type: Literal["output_text"] = "output_text"
    logprobs: list[Any] | None = None


class NeMoGymResponseOutputRefusal(TaggedModel):
    refusal: str
    type: Literal["refusal"] = "refusal"


NeMoGymResponseOutputPart = Annotated[NeMoGymResponseOutputText | NeMoGymResponseOutputRefusal, Field(discriminator="type")]


class NeMoGymSummary(TaggedModel):
    text: str
    type: Literal["summary_text"] = "summary_text"


class NeMoGymReasoningContent(TaggedModel):
    text: str
    type: Literal["reasoning_text"] = "reasoning_text"
