"""One tree of errors: place, remedy, exit code, and the way home from another process."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from coalmine.protocol import errors
from coalmine.protocol.errors import CoalmineError, Interrupted, nearest
from coalmine.protocol.privacy import Assurance, Mechanism

KINDS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CoalmineError)),
    key=lambda kind: kind.__name__,
)


def drawn():
    """The tree as the module's docstring draws it: name, parent."""
    above = {}
    parents = {}
    for line in (errors.__doc__ or "").splitlines():
        if not any(kind.__name__ in line for kind in KINDS):
            continue
        name = next(word for word in line.split() if word in {kind.__name__ for kind in KINDS})
        depth = line.index(name)
        above[depth] = name
        parents[name] = max(((at, other) for at, other in above.items() if at < depth), default=(0, ""))[1]
    return parents


def test_the_drawn_tree_is_the_tree():
    assert drawn() == {kind.__name__: kind.__bases__[0].__name__ if kind is not CoalmineError else "" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_place_and_remedy_are_told_and_survive_pickling(kind):
    error = kind("what", where="where", remedy="remedy")
    assert str(error) == "where: what (remedy)"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.what, again.where, again.remedy, str(again)) == ("what", "where", "remedy", str(error))
    assert str(kind("what")) == "what"
    assert str(kind("what", where="where")) == "where: what"
    assert str(kind("what", remedy="remedy")) == "what (remedy)"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not CoalmineError])
def test_what_a_person_can_act_on_ends_with_code_2(kind):
    assert kind.exit_code == (130 if kind is Interrupted else 2)


def test_an_error_crosses_processes():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(errors.StudyError, match=r"privacy\.q: 2 is not allowed \(needs a participation rate"),
    ):
        pool.submit(Mechanism, q=2).result()


def test_the_nearest_word_comes_first():
    assert nearest("sgma", ["sigma", "q", "clip"]) == "did you mean 'sigma'? known: clip, q, sigma"
    assert nearest("zzzz", ["sigma", "q"]) == "known: q, sigma"
    assert nearest("anything", []) == "nothing is known here"


def test_members_are_shown_as_their_words():
    assert nearest("fromal", Assurance) == "did you mean 'formal'? known: exact, formal, heuristic"
