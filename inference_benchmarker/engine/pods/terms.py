"""The terms between a command and the attendant in the pod of a wave, over ``kubectl exec``: lines of JSON.

The command (``do``) asks to hear what the wave says from a place on (``follow``), to end it (``end``), for the files of
its results (``list``) and blocks of them (``block``); it confirms that it has them (``fetched``), and beats meanwhile.
It also tells where the nodes are (``places``), as far as it may ask, how wide its terminal is (``columns``), and which
keys are pressed there (``keys``). The attendant (``say``) begins with ``hello``, passes on ``words`` and the panel of
the wave (``screen``), tells that the wave has ``ended``, answers with ``files``, ``block`` and ``confirmed``, and beats
too. Either side gives up a connection that is silent.
"""

from __future__ import annotations

BLOCK = 1 << 18
"""Bytes of a file in a message: as many as are lost when a connection breaks."""

BEAT_S = 3.0
"""How often each side lets the other one know that it is there."""

SILENT_S = 30.0
"""A connection on which nothing was heard for so long is given up."""

LEASE_S = 60.0
"""An attendant that hears nothing for so long ends: its command has another one by now."""

PROGRAM = ("benchmark", "kubernetes", "attend")
"""What runs in the pod."""
