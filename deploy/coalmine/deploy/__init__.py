"""Puts the rooms together: study files, the one-machine simulation, the command line.

Importing it switches telemetry off first, because libraries read those settings when they are imported.
"""

from coalmine.deploy.quiet import be_quiet

be_quiet()
