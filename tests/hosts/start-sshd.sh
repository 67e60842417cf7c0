#!/bin/sh
# Starts the host's sshd and waits until it listens.
LD_LIBRARY_PATH=$(printf %s: /run/openssh/usr/lib/*-linux-gnu /run/openssh/lib/*-linux-gnu)
export LD_LIBRARY_PATH
rm -f /run/sshd.pid
/run/openssh/usr/sbin/sshd -f /run/lab/sshd_config -E /run/sshd.log </dev/null || exit
until [ -s /run/sshd.pid ]; do sleep 0.005; done
