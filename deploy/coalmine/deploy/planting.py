"""From an attack and a canary to a planted bank: pools, design, probes in place."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.attacks import Attack, CanaryKind, PoolKind
from coalmine.auditor.design import choose_probes
from coalmine.auditor.nonce import nonce_pool, nonce_user
from coalmine.clients.client import Client
from coalmine.clients.data.users import User
from coalmine.deploy.prepare import Prepared
from coalmine.deploy.study import Study
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError
from coalmine.protocol.pool import TextPool
from coalmine.protocol.ports import Advance, Encoder, Generator
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.generate.collect import collect_paraphrases


@dataclass(frozen=True)
class Pool:
    """Probe candidates for one canary.

    Attributes:
        texts: M texts. embedded: (M, d). sources: the canary record each came from.
        generated: how a generator wrote them, ``None`` where none was asked.
    """

    texts: tuple[str, ...]
    embedded: NDArray[np.float32]
    sources: tuple[int, ...]
    generated: TextPool | None = None


@dataclass(frozen=True)
class Probes:
    """What an attack plants, the same in every round.

    Attributes:
        texts: r texts, in the order of the declared positions. embedded: (r, d).
    """

    texts: tuple[str, ...] = field(repr=False)
    embedded: NDArray[np.float32]


@dataclass(frozen=True)
class Planted:
    """One attack on one canary, ready to be committed.

    Attributes:
        bank: with the probes in place. candidates: (p, d) its embeddings.
        probes: (r, d) embeddings at the study's probe positions, planted or not.
    """

    bank: Bank
    candidates: NDArray[np.float32]
    probes: NDArray[np.float32]


def canary_client(kind: CanaryKind, number: int, study: Study, prepared: Prepared, encoder: Encoder) -> Client:
    """The canary as a client of its own. Its id is its number: no user name leaves the data."""
    if kind is CanaryKind.REAL:
        return Client(f"real canary {number}", prepared.canaries[number - 1])
    records = nonce_user(study.seed, number, study.audit.canary_records)
    return Client(f"nonce canary {number}", encoder.encode(records, what="nonces"))


def embed_nonces(study: Study, encoder: Encoder) -> None:
    """Let the encoder's cache hold every nonce before the first is asked for: many at once are embedded faster."""
    audit = study.audit
    texts: list[str] = []
    for number in range(1, audit.canaries + 1):
        texts += nonce_user(study.seed, number, audit.canary_records) + nonce_pool(study.seed, number, audit.pool)
    encoder.encode(texts, what="nonces")


def build_pool(
    kind: PoolKind,
    number: int,
    canary: User,
    study: Study,
    prepared: Prepared,
    encoder: Encoder,
    generator: Generator,
    advance: Advance,
) -> Pool:
    """The pool of one kind for one canary.

    Args:
        canary: the real user of that number; nonce pools ignore it.
    """
    match kind:
        case PoolKind.NONE:
            return Pool((), np.empty((0, prepared.candidates.shape[1]), np.float32), ())
        case PoolKind.COPIES:
            return Pool(canary.records, prepared.canaries[number - 1], tuple(range(len(canary.records))))
        case PoolKind.NONCES:
            texts = nonce_pool(study.seed, number, study.audit.pool)
            return Pool(texts, encoder.encode(texts, what="nonces"), tuple(range(len(texts))))
        case PoolKind.PARAPHRASES:
            generated = collect_paraphrases(
                generator,
                canary.records,
                study.audit.pool,
                int(stream(study.seed, Purpose.GENERATOR, user=f"paraphrases {number}").integers(2**62)),
                encoder,
                study.generator.min_cosine,
                exclude=prepared.bank.texts,
                progress=advance,
            )
            embedded = encoder.encode(generated.texts, what="paraphrases")
            return Pool(generated.texts, embedded, generated.sources, generated)


def plant(attack: Attack, number: int, canary: Client, pool: Pool, study: Study, prepared: Prepared) -> Planted:
    """Choose the probes on this bank and put them in place.

    Raises:
        BankError: a probe's text stands in the bank already.
    """
    return place(attack, choose(attack, number, canary, pool, study, prepared), prepared)


def choose(attack: Attack, number: int, canary: Client, pool: Pool, study: Study, prepared: Prepared) -> Probes | None:
    """The probes of an attack, from public data and the bank of its first round; ``None`` where it plants none."""
    if attack.pool is PoolKind.NONE:
        return None
    picks = choose_probes(
        attack,
        canary.records,
        pool.embedded,
        pool.sources,
        prepared.candidates,
        prepared.positions,
        prepared.auxiliary,
        study.data.test,
        stream(study.seed, Purpose.SELECTION, user=f"{attack.name} {number}"),
    )
    return Probes(tuple(pool.texts[pick] for pick in picks), pool.embedded[picks])


def place(attack: Attack, probes: Probes | None, prepared: Prepared) -> Planted:
    """Put probes into a bank, at the declared positions.

    Raises:
        BankError: a probe's text stands in the bank already.
    """
    positions = prepared.positions
    if probes is None:
        return Planted(prepared.bank, prepared.candidates, prepared.candidates[positions])
    try:
        bank = prepared.bank.replace(dict(zip(positions.tolist(), probes.texts, strict=True)))
    except BankError as error:
        raise BankError(
            f"attack {attack.name!r} would plant a text that the bank holds already",
            where=error.where,
            remedy="use another bank, or another seed for its generation",
        ) from None
    candidates = prepared.candidates.copy()
    candidates[positions] = probes.embedded
    return Planted(bank, candidates, probes.embedded)
