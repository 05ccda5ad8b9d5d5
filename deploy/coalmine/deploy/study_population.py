"""The sections of a study about its users or clients: how they come and go, and who adds the noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from coalmine.deploy.study_section import Count, Section

if TYPE_CHECKING:
    from coalmine.clients.population.conditions import Conditions


class NoiseSection(Section):
    """Who adds the noise; every key here can change the guarantee."""

    mode: Literal["central", "distributed"] = "central"
    survivors: Count | None = Field(
        None, description="distributed: public number of participants sure to survive; shares are sized for them"
    )
    aggregator: Literal["trusted", "untrusted"] = Field(
        "trusted", description="distributed: a trusted one tops up to a public level; else too few abort the round"
    )

    @model_validator(mode="after")
    def _fits(self) -> NoiseSection:
        if self.mode == "distributed" and self.survivors is None:
            raise ValueError("mode 'distributed' needs survivors, a public number of participants")
        if self.mode == "central" and self.aggregator == "untrusted":
            raise ValueError("mode 'central' needs a trusted aggregator")
        return self


class PopulationSection(Section):
    """How the voting users, or the clients of `coalmine train`, come and go. Nothing here is decided by a count."""

    sampling: Literal["poisson"] = "poisson"
    availability: Literal["always", "independent", "diurnal", "trace"] = "always"
    rate: float = Field(1.0, description="independent: probability of being reachable in a round")
    lowest: float = Field(0.1, description="diurnal: probability at the worst hour of a user's day")
    highest: float = Field(0.9, description="diurnal: probability at the best")
    peak_hour: float = Field(2.0, description="diurnal: the best hour, local time")
    hours_per_round: float = Field(1.0, description="diurnal: from one round to the next; round 0 is at 0 h UTC")
    zones: tuple[tuple[float, float], ...] | None = Field(
        None, min_length=1, description="diurnal: offsets from UTC in hours, with weights; none: all alike"
    )
    trace: Path | None = Field(None, description="trace: CSV or JSONL with user and round, or user, from and to")
    dropout: float = Field(0.0, description="probability that a drawn user never answers")
    deadline: float | None = Field(None, gt=0, description="a later answer does not count; none: a round waits for all")
    median_delay: float = Field(1.0, description="of an answer, in the unit of the deadline")
    spread_delay: float = Field(1.0, description="standard deviation of the delay's logarithm")

    @model_validator(mode="before")
    @classmethod
    def _no_quota(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("sampling", "poisson") != "poisson":
            raise ValueError(
                f"sampling {values['sampling']!r} is not offered: with a quota or a cohort of fixed size one user"
                " displaces another, and the accounting of independent Poisson participation does not hold; needs"
                " 'poisson'"
            )
        return values

    @model_validator(mode="after")
    def _fits(self) -> PopulationSection:
        if self.availability == "trace" and self.trace is None:
            raise ValueError("availability 'trace' needs a trace, a CSV or JSONL file")
        self.conditions()
        return self

    def settings(self) -> dict[str, str | float]:
        """Flat, as the one reader of them wants it."""
        from coalmine.clients.population.settings import PREFIX, written_zones

        found = self.model_dump(exclude={"sampling"})
        found["zones"] = "" if self.zones is None else written_zones(self.zones)
        found["trace"] = "" if self.trace is None else str(self.trace)
        found["deadline"] = 0.0 if self.deadline is None else self.deadline
        return {f"{PREFIX}{key}": value for key, value in found.items()}

    def conditions(self) -> Conditions:
        """Without a trace, which is a file: whoever reads it puts it in."""
        from coalmine.clients.population.settings import PREFIX, conditions

        read_later = {f"{PREFIX}availability": "always"} if self.availability == "trace" else {}
        return conditions(self.settings() | read_later)
