"""Imported at the start of every Python process of an integration test: no connection leaves this machine."""

import contextlib
import ipaddress
import os
import sys

_LOG = os.environ.get("COALMINE_SOCKET_LOG")


def _local(host: object) -> bool:
    if not isinstance(host, str | bytes):
        return False
    name = host.decode() if isinstance(host, bytes) else host
    if name in ("", "localhost", "0.0.0.0", "::"):
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name.split("%")[0]).is_loopback
    return False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0] or ""
    else:
        return
    if not _local(host):
        if _LOG:
            with open(_LOG, "a") as log:  # noqa: PTH123
                log.write(f"{os.getpid()} {event} {host!r}\n")
        raise ConnectionRefusedError(f"{event} to {host!r} is not allowed in tests")


if _LOG:
    sys.addaudithook(_watch)
