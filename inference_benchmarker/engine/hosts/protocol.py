"""The terms between a command and its agents on other hosts.

A wave begins with ``wave``; the command asks ``environment``, ``file``, ``spawn``, ``begin``, ``connect`` and
``signal`` of it, and ``finish`` in the end. Beside waves it asks ``clock``, ``beat`` and ``close`` (``do``). The agent
says ``hello`` first, of a wave ``ready``, ``stored`` for each part of a file, ``memory``, ``log``, ``samples``,
``ended`` and ``finished``, whenever it is so ``clock`` and ``failed``, and ``closed`` last (``say``); ``said`` has what
is in them. Both are of one version, so no message but ``hello`` is ever of another one's.
"""

from __future__ import annotations

LEASE_S = 10.0
"""An agent that hears nothing of its command for so long ends its workers and itself."""

LOST_S = 12.0
"""A host of which nothing is heard for so long is lost: its agent's lease is over by then."""

QUIET_S = 4.0
"""Of a host that was not heard of for so long the lease is renewed by another login, as long as it lasts.

TCP sends what was lost again after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s: behind a cable that was out for 7 s a connection
stands still until the lease is over, though a new one is there at once.
"""

SILENT_S = 20.0
"""A host whose lease was renewed so is lost where nothing else is heard for so long, not even what TCP sends again."""

KEEP_S = 0.25
"""How often a host is let know that its command is there, which renews its lease."""

ASK_S = 1.0
"""How often the clock of a host is asked."""

BEAT_S = 0.25
"""How often an agent reports its workers' memory and logs."""

SOCKET = "primary"
"""The socket that leads to the primary, in a folder of its own on either side."""

LEASE = "lease"
"""A file in the folder of an agent: its lease is renewed by whoever touches it."""

WAVE = "wave"
"""The folder of a wave, in that of its agent."""

NODE = "POD_NODE"
"""The variable of a pod that names its node, which the agent there tells the command."""

NODE_NAME = r"[A-Za-z0-9.-]{1,253}"
"""What such a name is made of."""

FILES = "files"
"""The folder of a wave that stands for the one in which the command was started."""
