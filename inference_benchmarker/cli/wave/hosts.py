"""``benchmark hosts``: the hosts that may send load: which are usable, and what a worker needs on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.flags import Flag, parse_path, read_flags
from inference_benchmarker.cli.core.hosts_flags import HOSTS_FLAGS, OF_HOSTS, WHICH
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import BAD_INPUT, OK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.cli.core.flags import Table
    from inference_benchmarker.engine.hosts.checking import Checked
    from inference_benchmarker.engine.hosts.preparing import HostOutcome
    from inference_benchmarker.plan.hosts import Hosts

HOSTS_HELP = """\
usage: benchmark hosts COMMAND [options]

Manages, over ssh, the hosts that send load. Commands (each with --help):
  check    check whether each host can be used
  prepare  install what the workers of this version need
  clean    remove what prepare installed

For hosts that connect by themselves, without ssh:
  keys     make a key file for each host, and one for this machine
  join     run this on each host: it joins a command with --listen
"""
_ABOUT = {
    "check": "Logs in to each host as `benchmark --hosts` does, and checks how exact its clock is. It sends no load.",
    "prepare": "Installs in ~/.cache/inference-benchmarker on each host what this version's workers need.",
    "clean": "Removes from each host what `benchmark hosts prepare` installed, for this version and all others.",
    "keys": (
        "Makes a folder of keys: localhost.json for the host that starts a wave, and HOST.json for each host that\n"
        "sends its load. Start the wave with --host-keys DIR/localhost.json. Copy each HOST.json to its host, for\n"
        "`benchmark hosts join --host-keys`."
    ),
    "join": (
        "Run this on a host that sends load. It connects to the command that starts the wave on another machine\n"
        "(`benchmark --listen --host-keys`), runs as many workers as that command asks for, and exits when that\n"
        "command exits. Either can start first."
    ),
}
_REACHED = {"check": "usable", "prepare": "prepared", "clean": "clean"}
"""The state of every host after a command that succeeded."""

_EPILOGS = {
    **{
        command: f"exit codes: 0 every host is {state}; 2 some host is not (the reason is given); 130 interrupted\n"
        for command, state in _REACHED.items()
    },
    "keys": "exit codes: 0 the keys were made; 2 they were not (the reason is given)\n",
    "join": (
        "exit codes: 0 the command no longer needs this host; 2 it did not let this host in (the reason is given); "
        "130 interrupted\n"
    ),
}
_OF_ONE = {flag.name: flag for flag in HOSTS_FLAGS}
_WHEELS = Flag("--wheels", "DIR", "take wheels from this folder, and nothing from pip's index", parse_path)
_JSON = Flag("--json", None, "print the table as JSON")
_NAMES = WHICH[0]._replace(about="names of the hosts that send the load: load1,load2,load3")
_KEYS_DIR = Flag("--keys-dir", "DIR", "make this folder, which only you can read", parse_path)
_ADDRESS = Flag("--address", "ADDRESS:PORT", "the ADDRESS:PORT that the command was given with --listen")
_REACHED_BY = [
    WHICH[0]._replace(about="the hosts, reached over ssh with your configuration: load1,load2*4,admin@load3"),
    WHICH[1],
]
_FLAGS: dict[str, list[Flag]] = {
    "check": [*_REACHED_BY, _OF_ONE["join_timeout"]._replace(about="seconds to wait for every host"), _JSON],
    "prepare": [*_REACHED_BY, _OF_ONE["requirements"], _WHEELS],
    "clean": _REACHED_BY,
    "keys": [_NAMES, WHICH[1], _KEYS_DIR],
    "join": [
        _ADDRESS,
        _OF_ONE["host_keys"]._replace(about="the keys of this host"),
        _OF_ONE["join_timeout"]._replace(about="seconds to wait until the command lets this host in"),
    ],
}
_HEADER = ("Host", "usable", "version", "Python", "cores", "open files", "clock", "uncertainty", "round trip")


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(HOSTS_HELP, end="")
        return OK
    if command not in _FLAGS:
        commands = ", ".join(_FLAGS)
        raise BenchmarkError(f"There is no command {command!r} of benchmark hosts.", f"Commands are {commands}.")
    options, problems = hosts_parser(command).parsed(rest)
    if command == "join":
        return _join(options, problems)
    hosts, read = _hosts(command, options, problems)
    if command == "check":
        return _check(hosts, as_json=bool(options["json"]))
    others = [host.name for host in hosts.hosts if not host.is_this_host]
    if command == "keys":
        return _keys(others, read["keys_dir"])
    if len(others) < len(hosts.hosts):
        print("✓ localhost: this installation is used, and left as it is.", flush=True)
    return _done(command, others, read)


def hosts_parser(command: str) -> Parser:
    """The flags and help of a command."""
    table: Table = {OF_HOSTS: _FLAGS[command]}
    which = " (--hosts LIST | --hosts-file FILE)" if command != "join" else ""
    usage = f"benchmark hosts {command}{which} [options]"
    return command_parser(
        f"benchmark hosts {command}", table, usage=usage, description=_ABOUT[command], epilog=_EPILOGS[command]
    )


def _hosts(command: str, options: dict[str, Any], problems: list[str]) -> tuple[Hosts, dict[str, Any]]:
    """The hosts that are meant, and what else was given, or one error with everything that is wrong."""
    from inference_benchmarker.plan.hosts import Hosts

    given = read_flags(_FLAGS[command], options, problems)
    named, in_file = given.values["named"], given.values["in_file"]
    if options["hosts"] is not None and options["hosts_file"] is not None:
        problems.append("Give either --hosts or --hosts-file, not both.")
    if options["hosts"] is None and options["hosts_file"] is None:
        problems.append("Which hosts? Give --hosts LIST or --hosts-file FILE.")
    hosts = replace(Hosts(named or in_file or ()), **given.of(Hosts))
    problems += [problem.text for problem in (hosts.problems() if hosts else ())]
    if command == "keys" and given.values["keys_dir"] is None:
        problems.append("Where to? Give --keys-dir DIR, a new folder.")
    paths = (("requirements", "is_file", "no such file"), ("wheels", "is_dir", "no such folder"))
    for name, kind, missing in paths:
        path = given.values.get(name)
        if path is not None and not getattr(path, kind)():
            problems.append(f"--{name} {path}: there is {missing}.")
    refuse(problems)
    return hosts, given.values


def _keys(names: Sequence[str], folder: Path) -> int:
    """Make the keys, and say where each file belongs."""
    from inference_benchmarker.engine.hosts.host_keys import write_host_keys
    from inference_benchmarker.plan.hosts import THIS_HOST

    write_host_keys(folder, names, THIS_HOST)
    print(f"✓ {folder / THIS_HOST}.json: for --host-keys of the wave.", flush=True)
    for name in names:
        print(f"✓ {folder / name}.json: for `benchmark hosts join` on {name}.", flush=True)
    return OK


def _join(options: dict[str, Any], problems: list[str]) -> int:
    """Offer this host to a command, until that needs it no more."""
    from inference_benchmarker.plan.hosts import is_address
    from inference_benchmarker.words.redact import excerpt

    given = read_flags(_FLAGS["join"], options, problems).values
    problems += [
        f"Give --{name.replace('_', '-')}: `benchmark hosts join --help` explains it."
        for name in ("address", "host_keys")
        if options[name] is None
    ]
    if given["address"] is not None and not is_address(given["address"], with_port=True):
        problems.append(f"--address {excerpt(given['address'], 100)}: give ADDRESS:PORT, as in 10.0.0.5:5557.")
    refuse(problems)
    from inference_benchmarker.engine.hosts.dialling import join
    from inference_benchmarker.engine.hosts.host_keys import read_keys_of_host

    join(given["address"], read_keys_of_host(given["host_keys"]), float(given["join_timeout_s"]))
    return OK


def _check(hosts: Hosts, *, as_json: bool) -> int:
    from inference_benchmarker.cli.core.terminal import print_report, report_width
    from inference_benchmarker.engine.hosts.checking import check_hosts

    found = check_hosts(hosts)
    if as_json:
        import json

        print(json.dumps({"hosts": [_json(each) for each in found]}, indent=2), flush=True)
    else:
        print_report("\n".join([*_lines(found, report_width()), ""]))
    return BAD_INPUT if any(each.problem for each in found) else OK


def _json(checked: Checked) -> dict[str, Any]:
    from inference_benchmarker.words.units import NS

    clock = checked.clock
    fields = {"offset_s": clock.offset_ns, "uncertainty_s": clock.uncertainty_ns} if clock is not None else None
    return {
        "name": checked.name,
        "problem": checked.problem,
        "version": checked.version,
        "python": checked.python,
        "cores": checked.cores,
        "open_files": checked.open_files,
        "clock": fields and {name: nanoseconds / NS for name, nanoseconds in fields.items()},
    }


def _lines(found: Sequence[Checked], width: int | None = None) -> Iterator[str]:
    """The table, and a line for each host that is not usable."""
    from inference_benchmarker.words.text import plain
    from inference_benchmarker.words.wording import aligned

    yield from map(plain, aligned([_HEADER, *map(_row, found)], width))
    bad = [each for each in found if each.problem]
    if bad:
        yield ""
    yield from (plain(f"   ✗ {each.name}: {(each.problem or '').rstrip('.')}.") for each in bad)


def _row(checked: Checked) -> list[str]:
    from inference_benchmarker.words.units import NS
    from inference_benchmarker.words.wording import duration_text

    numbers = [None if value is None else f"{value:,}" for value in (checked.cores, checked.open_files)]
    clock: list[str | None] = [None, None, None]
    if checked.clock is not None:
        offset, uncertainty, trip = (
            duration_text(abs(value) / NS)
            for value in (checked.clock.offset_ns, checked.clock.uncertainty_ns, checked.clock.round_trip_ns)
        )
        clock = [("-" if checked.clock.offset_ns < 0 else "+") + offset, f"± {uncertainty}", trip]
    cells = [checked.version, checked.python, *numbers, *clock]
    return [checked.name, "no" if checked.problem else "yes", *("-" if value is None else value for value in cells)]


def _done(command: str, names: Sequence[str], given: dict[str, Any]) -> int:
    """Install or remove, and say of each host what came of it."""
    from inference_benchmarker.cli.core.terminal import print_report, say
    from inference_benchmarker.engine.hosts.preparing import clean_hosts, prepare_hosts

    found = (
        clean_hosts(names) if command == "clean" else prepare_hosts(names, given["wheels"], given["requirements"], say)
    )
    for each in found:
        print_report(f"{_done_text(command, each)}\n")
    return BAD_INPUT if any(each.problem for each in found) else OK


def _done_text(command: str, done: HostOutcome) -> str:
    from inference_benchmarker.words.text import plain
    from inference_benchmarker.words.wording import size_text

    if done.problem is not None:
        return plain(f"✗ {done.name}: {done.problem.rstrip('.')}.")
    if command == "clean":
        return f"✓ {done.name}: nothing of this tool remains there."
    return plain(f"✓ {done.name}: {size_text(done.size or 0)} installed ({done.text}).")
