#!/usr/bin/env bash
# The first process of a host: it makes the host's file systems, starts its sshd and reaps what nobody waits for.
# It ends with its standard input, and with it ends everything that runs on the host.
#
# GIVEN: the folder with the host's files. SSHD: the unpacked openssh-server. TREES: trees that the host may read,
# one a line. ADDRESS, NAME, LOGIN (its user), DISK (size), PYTHON (1: it has one), READ_ONLY_HOME (1: it is).
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

echo made
read -r # until the other end of the cable is there

hostname "$NAME"
ip link set lo up
ip address add "$ADDRESS/24" dev eth0
ip link set eth0 up

mount() { command mount --no-mtab "$@"; } # it would note in a /run that is being replaced

# Everything is laid out in what becomes /run, since the places it comes from are about to be covered.
run=$GIVEN/run
mount -t tmpfs -o mode=755 run "$run"
mkdir "$run"/{lab,openssh,sshd,disk,trees}
mount --bind "$GIVEN/given" "$run/lab"
mount --bind "$SSHD" "$run/openssh"
mount -t tmpfs -o "size=$DISK,mode=755" disk "$run/disk"
mapfile -t readable <<<"$TREES"
for number in "${!readable[@]}"; do
    [[ -n ${readable[number]} ]] || continue
    mkdir "$run/trees/$number"
    mount --bind -o ro "${readable[number]}" "$run/trees/$number"
done
mount --move "$run" /run

# One disk of its own: when it is full, it is full everywhere.
for place in home root tmp var/tmp; do
    mkdir -p "/run/disk/$place"
    mount --bind "/run/disk/$place" "/$place"
done
chmod 1777 /tmp /var/tmp
mount -t tmpfs -o mode=1777 shm /dev/shm
for number in "${!readable[@]}"; do
    [[ -n ${readable[number]} ]] || continue
    mkdir -p "${readable[number]}"
    mount --move "/run/trees/$number" "${readable[number]}"
done

for file in passwd shadow group hosts; do mount --bind "/run/lab/$file" "/etc/$file"; done
cp -r /run/lab/home "/home/$LOGIN"
mkdir -m 700 /home/other
chmod 700 "/home/$LOGIN" "/home/$LOGIN/.ssh"
chown -R "$LOGIN:$LOGIN" "/home/$LOGIN"
chown other:other /home/other
mount -t proc proc /proc

if [[ $PYTHON != 1 ]]; then
    for place in /usr/bin /usr/local/bin; do
        mkdir -p "/run/without$place"/{upper,work}
        mount -t overlay -o "lowerdir=$place,upperdir=/run/without$place/upper,workdir=/run/without$place/work" none "$place"
        rm -f "$place"/python*
    done
fi
if [[ $READ_ONLY_HOME == 1 ]]; then mount -o remount,bind,ro /home; fi
mount -o remount,bind,ro /

/run/lab/start-sshd
echo ready
exec 1>&-
while read -r; do :; done
