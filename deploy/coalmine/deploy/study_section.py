"""What every section of a study file has in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from coalmine.protocol.unicode import is_unicode

Count = Annotated[int, Field(ge=1, le=10**9)]


class Section(BaseModel):
    """Unknown keys are mistakes, yes is not 1, and a study does not change once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _yes_is_no_number(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field is not None and field.annotation is not bool:
                raise ValueError(f"{key}: {value!r} is not allowed here")
            if isinstance(value, str) and ("\0" in value or not is_unicode(value)):
                raise ValueError(f"{key}: {value!r} holds a character that no file name and no report can hold")
        return values
