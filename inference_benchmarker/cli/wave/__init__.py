"""One wave, and what belongs to it: a check before, a recording, server metrics, aiperf."""
