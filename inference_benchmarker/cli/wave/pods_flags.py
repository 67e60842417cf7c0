"""The flags that say which pods of a cluster a wave's load comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_decimal, parse_int, parse_path, read_flags, table_for
from inference_benchmarker.engine.pods.pods import NodeLabel, Pods, Toleration
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.cli.core.flags import Table

OF_PODS = "load from pods"


def _named(parse: Callable[[str], Any]) -> Callable[[str, str], Any]:
    """A parser whose errors do not name the flag."""

    def parsed(flag: str, text: str) -> Any:
        try:
            return parse(text)
        except BenchmarkError as error:
            raise BenchmarkError(f"{flag}: {error.message}", error.hint) from None

    return parsed


PODS_FLAGS: Table = table_for(
    Pods,
    table={
        OF_PODS: [
            Flag(
                "--pods",
                "N",
                "number of pods that send the load; one more pod coordinates them and writes the report",
                parse_int,
            ),
            Flag("--job-name", "NAME", "name of the Job, and of everything that belongs to it", sets="job"),
            Flag("--namespace", "NAME", "namespace of the objects (default: kubectl's)"),
            Flag("--pod-image", "IMAGE", "image with this version of the tool", sets="image"),
            Flag("--image-pull-secret", "NAME", "Secret with which the image is pulled"),
            Flag(
                "--node-selector",
                "KEY=VALUE",
                "only use nodes with this label (repeatable)",
                _named(NodeLabel.parse),
                sets="node_labels",
                repeatable=True,
            ),
            Flag(
                "--toleration",
                "KEY=VALUE:EFFECT",
                "also use nodes with this taint (repeatable); KEY:EFFECT is for any value, KEY for any value and "
                "effect",
                _named(Toleration.parse),
                sets="tolerations",
                repeatable=True,
            ),
            Flag("--service-account", "NAME", "service account of the pods, which may give them AWS credentials"),
            Flag(
                "--deadline",
                "S",
                "Kubernetes ends the Job after this time, even if it is not done (default: the longest time that the "
                "wave may take, plus an hour in which the results are kept)",
                parse_decimal,
                sets="deadline_s",
            ),
            Flag(
                "--keys-dir",
                "DIR",
                "create this folder, readable only by you, and write into it what the pods' Secret contains: their "
                "keys, and the values of --pass-env",
                parse_path,
            ),
        ]
    },
)


def take_pods(options: dict[str, Any], problems: list[str]) -> Pods:
    """The pods that the options name."""
    read = read_flags(PODS_FLAGS[OF_PODS], options, problems)
    if options["pods"] is None:
        problems.append("How many pods? Give --pods N.")
    pods = Pods(**{"pods": 1, **read.of(Pods)})
    problems += read.problem_texts(pods.problems())
    return pods
