"""What was measured, each time beside what it can be compared with. Heuristic: no privacy statement depends on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Repeated:
    """One measurement under several seeds.

    Attributes:
        values: one for each seed, at least one.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """Standard deviation over seeds (of the sample: n - 1); 0 for a single one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


@dataclass(frozen=True)
class References:
    """What a round's values are read against; the same for all rounds of a study.

    Attributes:
        size: texts on either side of every comparison. buckets: of MAUVE, fixed.
        mauve_ceiling: real against other real users. mauve_floor: the bank of round zero against real users.
        accuracy_real: trained on real users. accuracy_floor: trained on the bank of round zero. majority: of the class
            that is most frequent among real training users. All three ``None`` where there are no two labels.
    """

    size: int
    buckets: int
    mauve_ceiling: Repeated
    mauve_floor: Repeated
    accuracy_real: Repeated | None
    accuracy_floor: Repeated | None
    majority: float | None


@dataclass(frozen=True)
class RoundUtility:
    """Utility of the synthetic output of one round.

    Attributes:
        rounds: 1, 2, ... mauve: synthetic against real users, in [0, 1].
        accuracy: trained on synthetic, tested on real users; ``None`` where there are no two labels.
    """

    rounds: int
    mauve: Repeated
    accuracy: Repeated | None
    references: References


def utility_metrics(utility: RoundUtility) -> dict[str, float]:
    """Metrics of a round by their names in tracking."""
    against = utility.references
    measured = {
        "mauve": utility.mauve,
        "mauve_ceiling": against.mauve_ceiling,
        "mauve_floor": against.mauve_floor,
        "accuracy": utility.accuracy,
        "accuracy_real": against.accuracy_real,
        "accuracy_floor": against.accuracy_floor,
    }
    metrics = {f"utility/{name}": value.mean for name, value in measured.items() if value is not None}
    metrics |= {f"utility/{name}_spread": value.spread for name, value in measured.items() if value is not None}
    return metrics if against.majority is None else {**metrics, "utility/majority": against.majority}
