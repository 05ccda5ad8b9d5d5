"""The rooms: a namespace that stays one, a library that is not shadowed, rules that hold."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("protocol", "server", "clients", "auditor", "deploy")
BAGS = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "misc", "internal"}


def modules():
    return [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_one_package_of_the_namespace(room):
    assert not (ROOT / room / "__init__.py").exists()
    assert not (ROOT / room / "coalmine" / "__init__.py").exists()
    assert [path.name for path in (ROOT / room / "coalmine").iterdir() if path.name != "__pycache__"] == [room]
    assert (ROOT / room / "coalmine" / room / "py.typed").is_file()
    assert list(find_spec(f"coalmine.{room}").submodule_search_locations) == [str(ROOT / room / "coalmine" / room)]


def test_the_namespace_is_no_package():
    assert find_spec("coalmine").origin is None
    assert {Path(place).parent.name for place in find_spec("coalmine").submodule_search_locations} == set(ROOMS)


def test_the_folder_mlflow_does_not_shadow_the_library():
    assert list((ROOT / "mlflow").rglob("*.py")) == []
    code = "from importlib.util import find_spec; print(find_spec('mlflow').origin)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120, check=True
    )
    origin = Path(done.stdout.strip())
    assert origin.name == "__init__.py"  # a namespace has none, and no attribute either
    assert (ROOT / "mlflow") not in origin.parents
    assert "__version__" in origin.read_text(encoding="utf-8")


def test_no_module_is_a_bag():
    assert len(modules()) > 50
    assert [
        path for path in modules() if BAGS & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    ] == []


def test_no_module_is_longer_than_400_lines():
    assert [path for path in modules() if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_rooms_import_only_what_they_may():
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
