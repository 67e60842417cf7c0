"""A laboratory of real separate hosts on one machine: each has its own network, clock, processes and disk, and an sshd.

``with Lab() as lab: one, two = lab.start(Spec("load1"), Spec("load2", clock_s=1000))``; then whatever begins with the
words of ``lab.session`` is run by a user whose own ``ssh load1`` works. A server that listens on ``lab.address`` is
reached from each host. It needs root, iproute2, util-linux and openssh-client; ``LabError`` says what is missing.
"""
