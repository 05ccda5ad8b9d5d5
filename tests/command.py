"""The command line in a process of its own, as a user runs it."""

import os
import subprocess
import sys

COALMINE = (sys.executable, "-c", "from coalmine.deploy.cli import main; main()")
_SECONDS = 900
"""So that a test ends; a busy machine needs minutes for what takes seconds."""


def coalmine(*arguments, cwd, cache=None, check=True):
    """The ended process; with ``check`` an error ends the test with what was said on stderr."""
    done = subprocess.run(
        [*COALMINE, *arguments], cwd=cwd, env=environment(cache), capture_output=True, text=True, timeout=_SECONDS
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def environment(cache=None):
    """This process's, with another cache folder where one is given."""
    return {**os.environ, **({} if cache is None else {"COALMINE_CACHE": str(cache)})}
