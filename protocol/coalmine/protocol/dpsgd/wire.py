"""Names of what the server and the clients of a federated run send each other."""

from __future__ import annotations

from typing import Final

MODEL: Final = "model"
"""Arrays: the (P,) parameters. To clients, and in local mode back from them."""
UPDATES: Final = "updates"
"""Arrays: the (w, P) latest noised gradients that a signature looks at."""
ORDER: Final = "order"
"""Settings: ``round``, the present one; ``step``, of a repeated filtering that of then; ``filtering``, its number (-1:
none); ``done``, filterings before this step. Empty outside of rounds."""
SUM: Final = "sum"
"""Arrays: (P,) integers, the client's sum of clipped gradients."""
RANKED: Final = "ranked"
"""Arrays: ids, labels, signatures of a client's active samples. Scope ``federation`` only."""
FORGET: Final = "forget"
"""Arrays: ids of a client's samples that a filtering over all clients drops."""
ACCOUNT: Final = "account"
"""Settings: ``client``, its number; ``steps``, noised steps that its accountant has seen."""
BEHIND: Final = "behind"
"""Settings: ``done``, filterings that a client has seen where others have seen more: it did not take part."""
AWAY: Final = "away"
"""Empty. A client that the simulated population makes silent in this round; for the server it did not answer."""
REFUSED: Final = "refused"
"""Settings: ``what``, ``where``, ``remedy`` of a client that will not go on."""

INITIAL: Final = "query.initial"
FILTER: Final = "query.filter"
RANK: Final = "query.rank"
DROP: Final = "query.drop"
