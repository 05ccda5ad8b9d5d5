"""Before the first commitment: users, encoder, bank, probe positions, clients."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coalmine.auditor.public import PublicUsers, public_users
from coalmine.clients.data.load import load
from coalmine.clients.data.splits import Splits, SplitSizes, split_users
from coalmine.clients.shard import Hosted
from coalmine.deploy.parts import data_source
from coalmine.deploy.study import Study
from coalmine.protocol.bank import Bank
from coalmine.protocol.errors import BankError, ModelError
from coalmine.protocol.pool import Tally, TextPool
from coalmine.protocol.ports import Advance, Encoder, Generator
from coalmine.protocol.privacy import Mechanism
from coalmine.protocol.randomness import Purpose, stream
from coalmine.server.bank_file import read_bank
from coalmine.server.generate.collect import collect_samples


@dataclass(frozen=True)
class People:
    """The study's users in their disjoint roles, with the public facts about the data."""

    splits: Splits
    labels: tuple[str, ...]
    digest: str
    source: str


def people(study: Study, *, canaries: bool = True) -> People:
    """Load and split the users.

    Args:
        canaries: whether real users are to be audited; a one-run audit makes up its own.

    Raises:
        DataError: what is wrong with the data, or how many users are missing.
    """
    table = load(data_source(study))
    data, audit = study.data, study.audit
    sizes = SplitSizes(data.auxiliary, data.calibration, data.test, audit.canaries if canaries else 0)
    records = audit.canary_records if canaries else 1
    splits = split_users(table, sizes, data.min_records, study.privacy.max_records, records, study.seed)
    labels = sorted({label for user in table.users for label in user.labels if label}) or [""]
    return People(splits, tuple(labels), table.digest, table.source)


def embed_users(splits: Splits, encoder: Encoder) -> dict[str, Hosted]:
    """Every group of users, embedded, by its name in ``Splits``. All at once, which fills the encoder's batches."""
    groups = {"aux": splits.aux, "calibration": splits.calibration, "test": splits.test, "canaries": splits.canaries}
    texts = [record for users in groups.values() for user in users for record in user.records]
    embedded = encoder.encode(texts, what="users' records")
    hosted: dict[str, Hosted] = {}
    first = 0
    for name, users in groups.items():
        offsets = np.cumsum([0, *(len(user.records) for user in users)]).astype(np.int64)
        rows = embedded[first : first + offsets[-1]]
        hosted[name] = Hosted(tuple(user.id for user in users), rows, offsets)
        first += offsets[-1]
    return hosted


def build_bank(
    study: Study, generator: Generator, encoder: Encoder, people: People, advance: Advance
) -> tuple[Bank, TextPool]:
    """Generate the study's bank from labels only, or read it, with the account of how it came about.

    A generated bank holds none of the canaries' texts, which an attack may plant later.

    Raises:
        BankError: a file that is not a bank, or of another size. ModelError: a bank made for another encoder.
    """
    if study.bank.file is None and study.bank.source == "auxiliary":
        return _public_bank(study, encoder, people)
    if study.bank.file is None:
        exclude = {record for user in people.splits.canaries for record in user.records}
        pool = collect_samples(generator, people.labels, study.bank.size, study.seed, exclude=exclude, progress=advance)
        return Bank(pool.texts, tuple(people.labels[source] for source in pool.sources), encoder.id), pool
    bank = read_bank(study.bank.file)
    if bank.encoder_id != encoder.id:
        raise ModelError(
            f"the bank was made for encoder {bank.encoder_id}, the study uses {encoder.id}",
            where=str(study.bank.file),
            remedy="build the bank again, or change encoder",
        )
    if len(bank) != study.bank.size:
        raise BankError(
            f"the bank holds {len(bank)} candidates, the study says {study.bank.size}",
            where=str(study.bank.file),
            remedy="set bank.size",
        )
    return bank, TextPool(bank.texts, tuple(range(len(bank))), f"file/{study.bank.file.name}", Tally(asked=0))


def _public_bank(study: Study, encoder: Encoder, people: People) -> tuple[Bank, TextPool]:
    """A bank of public users' own records, in an order of the study's seed.

    Raises:
        BankError: they hold too few distinct texts.
    """
    exclude = {record for user in people.splits.canaries for record in user.records}
    labelled = {
        record: label
        for user in people.splits.aux
        for record, label in zip(user.records, user.labels, strict=True)
        if record not in exclude
    }
    texts = list(labelled)
    if len(texts) < study.bank.size:
        raise BankError(
            f"the auxiliary users hold {len(texts)} distinct texts, a bank of {study.bank.size} is asked for",
            where="bank.source",
            remedy="set bank.size lower, take more auxiliary users, or write the bank from labels",
        )
    order = stream(study.seed, Purpose.GENERATOR, user="auxiliary bank").permutation(len(texts))[: study.bank.size]
    chosen = tuple(texts[index] for index in order)
    bank = Bank(chosen, tuple(labelled[text] for text in chosen), encoder.id)
    return bank, TextPool(chosen, tuple(range(len(chosen))), "records of auxiliary users", Tally(asked=0))


@dataclass(frozen=True)
class Prepared:
    """Everything that is fixed before an attack is designed.

    Attributes:
        candidates: (p, d) the base bank's embeddings. positions: (r,) where probes go.
        canaries: one embedded (m, d) array per real canary.
    """

    bank: Bank
    candidates: NDArray[np.float32]
    positions: NDArray[np.int64]
    auxiliary: PublicUsers
    calibration: PublicUsers
    canaries: tuple[NDArray[np.float32], ...]


def prepare(
    study: Study,
    users: dict[str, Hosted],
    bank: Bank,
    encoder: Encoder,
    positions: NDArray[np.int64],
    bits: int,
    threads: int,
) -> Prepared:
    """Embed the bank and route the public users over what no attack touches.

    Args:
        users: as ``embed_users`` gives them. positions: (r,) declared for probes. bits: of the clients' grid.
        threads: speed only.
    """
    mechanism: Mechanism = study.carried()
    candidates = encoder.encode(bank.texts, what="bank")

    def public(hosted: Hosted) -> PublicUsers:
        return public_users(hosted.records, hosted.offsets, candidates, positions, mechanism, bits, threads)

    canaries = users["canaries"]

    return Prepared(
        bank,
        candidates,
        positions,
        public(users["aux"]),
        public(users["calibration"]),
        tuple(canaries.records[low:high] for low, high in itertools.pairwise(canaries.offsets)),
    )
