"""The terms between a command and its agents on other hosts.

The command asks ``environment``, ``file``, ``spawn``, ``begin``, ``connect``, ``signal``, ``clock`` and ``close``
(``do``); the agent says ``hello`` first, then ``clock``, ``memory``, ``log``, ``samples``, ``ended`` and ``failed``,
and ``closed`` last (``say``). Both are of one version, so no message is ever of another one's.
"""

from __future__ import annotations

LEASE_S = 10.0
"""An agent that hears nothing of its command for so long ends its workers and itself."""

LOST_S = 12.0
"""A host of which nothing is heard for so long is lost: its agent's lease is over by then."""

ASK_S = 1.0
"""How often the clock of a host is asked, which renews its lease."""

BEAT_S = 0.25
"""How often an agent tells of its workers' memory and logs."""

SOCKET = "primary"
"""The socket that leads to the primary, in a folder of its own on either side."""

FILES = "files"
"""The folder of an agent that stands for the one in which the command was started."""
