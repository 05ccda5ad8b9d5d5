"""The apps under Flower itself: a SuperLink and three SuperNodes, processes of their own on the loopback address."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs coalmine[federated]")
pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
_BIN = Path(sys.executable).parent
_SETTINGS = {
    "clients": 3,
    "steps": 2,
    "universe": 120,
    "declared_size": 120,
    "q": 0.25,
    "scope": "federation",
    "data.train": 120,
    "data.test": 50,
    "model.hidden": "6",
    # Client 0 alone is there at the filtering of round 0; the others catch up in round 1.
    "population.availability": "diurnal",
    "population.lowest": 0.0,
    "population.highest": 1.0,
    "population.hours_per_round": 6.0,
    "population.zones": "-2:1,10:1",
}


def environment(home):
    lines = (ROOT / "deploy" / "flower.env").read_text().splitlines()
    quiet = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    path = os.pathsep.join([str(_BIN), os.environ["PATH"]])
    return {**os.environ, **quiet, "PATH": path, "FLWR_HOME": str(home), "HOME": str(home), "OMP_NUM_THREADS": "1"}


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_for(port):
    until = time.monotonic() + 300
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise TimeoutError(f"nothing listens on {port}")


def started(stack, arguments, home, log):
    """A process that ends, with all that it started, when the stack closes."""
    file = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(
        arguments, env=environment(home), stdout=file, stderr=subprocess.STDOUT, cwd=home, start_new_session=True
    )

    def end():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=20)

    stack.callback(end)
    return process


def written(settings):
    return " ".join(
        f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}" for key, value in settings.items()
    )


@pytest.mark.long
def test_separate_processes_train_the_model_that_one_process_trains(tmp_path):
    link, *nodes = free_ports(4)
    (tmp_path / "config.toml").write_text(
        f'[superlink]\ndefault = "test"\n\n[superlink.test]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    with ExitStack() as stack:
        address = ("--insecure", "--host", "127.0.0.1", "--port", str(link))
        quiet = ("--disable-runtime-dependency-installation", "--database", str(tmp_path / "state.db"))
        processes = [started(stack, [_BIN / "flower-superlink", *address, *quiet], tmp_path, tmp_path / "link.log")]
        wait_for(link)
        for number, port in enumerate(nodes):
            here = ("--insecure", "--superlink", f"127.0.0.1:{link}", "--port", str(port))
            which = ("--node-config", f"partition-id={number} num-partitions=3")
            processes.append(
                started(stack, [_BIN / "flower-supernode", *here, *which], tmp_path, tmp_path / f"node-{number}.log")
            )
        assert len({process.pid for process in processes}) == 4
        result = tmp_path / "model.npz"
        settings = written({**_SETTINGS, "result": str(result)})
        done = subprocess.run(
            [_BIN / "flwr", "run", str(ROOT), "test", "--stream", "--run-config", settings],
            env=environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
        )
        logs = "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(tmp_path.glob("*.log")))
        assert done.returncode == 0, done.stdout + done.stderr + logs
        assert result.exists(), done.stdout + logs
        assert all(process.poll() is None for process in processes), logs
    assert np.array_equal(np.load(result)["theta"], in_process())


def test_flwr_run_simulates_the_same_federation(tmp_path):
    """`flwr run .` on a SuperLink that simulates its nodes: it ends with the test, listens here, and calls nobody."""
    (link,) = free_ports(1)
    # Without this file Ray's API server, which Flower's simulation starts, asks cloud metadata addresses where it runs.
    (tmp_path / "ray_bootstrap_config.yaml").write_text("provider: {type: local}\n")
    (tmp_path / "config.toml").write_text(
        f'[superlink]\ndefault = "test"\n\n[superlink.test]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    result = tmp_path / "model.npz"
    with ExitStack() as stack:
        address = ("--insecure", "--simulation", "--host", "127.0.0.1", "--port", str(link))
        quiet = ("--disable-runtime-dependency-installation", "--database", str(tmp_path / "state.db"))
        process = started(stack, [_BIN / "flower-superlink", *address, *quiet], tmp_path, tmp_path / "link.log")
        wait_for(link)
        settings = written({**_SETTINGS, "result": str(result)})
        nodes = ("--federation-config", "num-supernodes=3 client-resources-num-cpus=1 init-args-num-cpus=2")
        done = subprocess.run(
            [_BIN / "flwr", "run", ".", "test", "--stream", "--run-config", settings, *nodes],
            env=environment(tmp_path),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
        )
        log = (tmp_path / "link.log").read_text(errors="replace")[-5000:]
        assert done.returncode == 0, done.stdout + done.stderr + log
        assert result.exists(), done.stdout + log
        assert process.poll() is None, log
    assert process.poll() is not None
    assert np.array_equal(np.load(result)["theta"], in_process())


def in_process():
    import tomllib

    from coalmine.clients.training.app import app as client_app
    from coalmine.deploy.training.federation import run_in_process
    from coalmine.server.training import app as server_app

    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    flat = {}
    for key, value in own.items():
        flat |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    context = run_in_process(server_app.app, client_app, {**flat, **_SETTINGS}, 3, lambda _: None)
    return context.state[server_app.MODEL].to_numpy_ndarrays()[0]
