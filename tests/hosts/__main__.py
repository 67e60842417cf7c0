"""Fetches the sshd that the separate hosts run; see ``openssh``."""

from __future__ import annotations

import sys

from tests.hosts.errors import LabError
from tests.hosts.openssh import fetch

try:
    fetch()
except LabError as error:
    sys.exit(str(error))
