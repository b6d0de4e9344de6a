"""What all schema classes share: unknown fields are kept, and the fields that carry training tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

REQUIRED_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
TOKEN_FIELDS = (*REQUIRED_TOKEN_FIELDS, "routed_experts")
"""In the order in which they are written."""
REQUIRED_TOKEN_METADATA_FIELDS = frozenset(REQUIRED_TOKEN_FIELDS)
TOKEN_METADATA_FIELDS = frozenset(TOKEN_FIELDS)
KEEP_UNKNOWN = ConfigDict(extra="allow")
"""For typed dicts, which would otherwise drop keys they do not know."""

_CONSTANTS = frozenset({"type", "role", "object"})


class SchemaModel(BaseModel):
    """A wire object. Endpoints add fields of their own; they are kept, so that a record shows what was really answered."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class TaggedModel(SchemaModel):
    """A wire object that a reader recognises by constant fields: they count as set, so that no dump leaves them out."""

    _constants: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **_kwargs: Any) -> None:
        cls._constants = _CONSTANTS & cls.model_fields.keys()

    def model_post_init(self, _context: Any) -> None:
        """Mark the constants of an object that was made without naming them."""
        if not self._constants <= self.__pydantic_fields_set__:
            self.__pydantic_fields_set__.update(self._constants)


class OpenObject(SchemaModel):
    """An object whose fields are not checked, readable as attributes (`tool.name`, `reasoning.effort`)."""

    def __getitem__(self, key: str) -> Any:
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None


class TokenIDLogProbMixin(BaseModel):
    """The tokens behind a generated item: what the model read, what it wrote, and the log probability of each written token."""

    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: str | list[list[list[int]]] | None = None
    """Mixture-of-experts routing per token and layer, or its encoded form."""


def carries_token_fields(item: dict[str, Any]) -> bool:
    """Whether a wire object has a token field that is not null; one is enough to demand the three required ones."""
    present = TOKEN_METADATA_FIELDS & item.keys()
    return bool(present) and any(item[key] is not None for key in present)


def text_or_list(value: Any) -> str:
    """Discriminator of fields that take text or a list, so that an error names the one that was meant."""
    return "text" if isinstance(value, str) else "list"
