"""A small Kubernetes of the tests' own, which the real kubectl speaks to; its pods are real processes.

By hand, as root::

    python -m tests.kube --port 18700 --kubeconfig kc      # says the address at which pods reach this machine
    export KUBECONFIG=$PWD/kc
    kubectl get nodes

In a test, ``with Cluster() as cluster, ApiServer(cluster) as server``; ``server.write_kubeconfig(path)``. An endpoint
that the pods are to reach listens at ``cluster.address``.

It serves Namespaces, Nodes, Secrets, ConfigMaps, Services, ServiceAccounts, ResourceQuotas, claims of volumes, Pods,
Events and Jobs, with watches, logs, ``exec`` and ``auth can-i``. New objects are held against the published schemas of
a version of Kubernetes (misspelt fields are refused), against quotas and Pod Security's level ``restricted``. The
controller of Jobs knows indexes, suspension, both limits of failures, deadlines and the time after the end; what loses
its owner is deleted. The scheduler counts cores and memory, and knows labels and taints.

A pod is one container: the command of its description, in network, mount and PID namespaces of its own, with a root
that holds what the image holds, volumes as folders, a CPU quota, and a name for each headless Service in /etc/hosts.
``sandbox.py`` makes it. It has no init containers, probes, restarts, NetworkPolicy or terminals, and no DNS server.

Faults, as methods of ``Cluster`` and by HTTP, with what they are given as JSON::

    curl -d '{"namespace": "default", "pod": "load-1-abcde"}' $SERVER/control/evict

evict, kill_for_memory, signal_pod (``number``), freeze (``seconds``): of a ``pod`` in a ``namespace``;
lose_node, find_node (``name``): what happens to its pods' network, and whether it is heard;
miss_image (``word``): images with it in their name cannot be pulled; an empty one: all can;
fill_nodes (``cpu``): cores of each node; deny (``verb``, ``resource``) and allow (nothing): what
clients may do;
cut_streams (``after``, ``times``): the connections of the next ``kubectl exec`` break after so many bytes of output;
go_away (``seconds``): the API server is not reached, and all connections to it break; rotate_log (``pod``): the log
begins anew; pass_time (``seconds``): of the deadlines of Jobs, and of the time after their end; mend: no more faults.
"""
