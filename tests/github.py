"""GitHub as action.yml sees it: a runner for composite actions, and a ``gh`` that answers from a folder.

``python tests/github.py FOLDER ...`` is that ``gh``. What it does not know, it refuses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = "somebody/something"
WORKFLOW = "load.yml"
TOKEN = "ghs_0123456789abcdefghij"
_STEP_KEYS = {"name", "id", "if", "shell", "run", "env", "uses", "with"}
_EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
_NAME = re.compile(r"\b(?:inputs|github|steps)\.[\w.-]+")
_FOR_EVERY_STEP = ("PATH", "PYTHONPATH")


@dataclass
class GitHub:
    """What is stored there: runs of workflows with their artifacts, and the comments of a pull request."""

    folder: Path
    may_list: bool = True
    may_write: bool = True
    download_fails: str = ""

    def save(self, **stored: Any) -> None:
        """Store runs or comments."""
        for name, value in stored.items():
            (self.folder / f"{name}.json").write_text(json.dumps(value))

    def load(self, name: str) -> list[dict[str, Any]]:
        """What is stored under a name."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else []

    def finish_run(self, number: int, *, branch: str, event: str = "push", conclusion: str = "success") -> None:
        """A run of the workflow ends; it is the last one."""
        fields = {
            "databaseId": number,
            "branch": branch,
            "event": event,
            "conclusion": conclusion,
            "workflow": WORKFLOW,
        }
        self.save(runs=[fields, *self.load("runs")])

    def artifact(self, run: int, name: str) -> Path:
        """Where an artifact lies."""
        return self.folder / "artifacts" / str(run) / name

    def make_gh(self, folder: Path) -> Path:
        """A folder for PATH, which has ``gh``."""
        folder.mkdir(parents=True)
        script = folder / "gh"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -P {__file__} {self.folder} "$@"\n')
        script.chmod(0o755)
        self.save(
            rights=[{"may_list": self.may_list, "may_write": self.may_write, "download_fails": self.download_fails}]
        )
        return folder


@dataclass
class Job:
    """A job that uses a composite action once. ``steps`` has the outputs of those with an id."""

    action: Path
    github: GitHub
    folder: Path
    inputs: dict[str, str]
    number: int
    pull_request: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    log: str = ""
    code: int = 0
    steps: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(self, described: dict[str, Any]) -> None:
        """Run its steps in turn; after one that failed, only those that always run."""
        given = {name: each["default"] for name, each in described["inputs"].items()}
        assert set(self.inputs) <= set(given)
        self.inputs = {**given, **self.inputs}
        (self.folder / "temp").mkdir(parents=True, exist_ok=True)
        (self.folder / "summary.md").touch()
        for step in described["runs"]["steps"]:
            assert set(step) <= _STEP_KEYS
            if self._applies(step.get("if", "")):
                self._run_step(step)
        self.outputs = {name: self._said(each["value"]) for name, each in described["outputs"].items()}

    @property
    def summary(self) -> str:
        """The summary of the job."""
        return (self.folder / "summary.md").read_text()

    def _applies(self, condition: str) -> bool:
        if self.code and "always()" not in condition:
            return False
        condition = condition.replace("always()", "True").replace("&&", "and")
        return not condition or bool(eval(_NAME.sub(lambda name: repr(self._value(name[0])), condition)))  # noqa: S307

    def _value(self, name: str) -> str:
        of_event = {"base_ref": "main" if self.pull_request else "", "token": TOKEN}
        first, *rest = name.split(".")
        if first == "inputs":
            return self.inputs[rest[0]]
        if first == "steps":
            assert rest[1] == "outputs"
            return self.steps.get(rest[0], {}).get(rest[2], "")
        if name == "github.event.pull_request.number":
            return str(self.pull_request or "")
        return of_event[rest[0]]

    def _said(self, text: str) -> str:
        said = _EXPRESSION.sub(lambda found: self._value(found[1]), text)
        assert "${{" not in said.replace(text, "")
        return said

    def _run_step(self, step: dict[str, Any]) -> None:
        if "uses" in step:
            self._upload(step)
            return
        outputs = self.folder / "outputs"
        outputs.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env=self._environment(step, outputs),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += done.stdout
        self.code = self.code or done.returncode
        fields = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        self.steps[step.get("id", "")] = fields

    def _environment(self, step: dict[str, Any], outputs: Path) -> dict[str, str]:
        """What a runner gives, what the job says, and what the step says: nothing else of this process."""
        own = {name: self._said(text) for name, text in step.get("env", {}).items()}
        return {
            **{name: os.environ[name] for name in _FOR_EVERY_STEP if name in os.environ},
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_BASE_REF": "main" if self.pull_request else "",
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/{WORKFLOW}@refs/pull/7/merge",
            "RUNNER_TEMP": str(self.folder / "temp"),
            **self.environment,
            **own,
        }

    def _upload(self, step: dict[str, Any]) -> None:
        assert step["uses"] == "actions/upload-artifact@v4"
        given = step["with"]
        place = self.github.artifact(self.number, self._said(given["name"]))
        shutil.copytree(self._said(given["path"]), place, dirs_exist_ok=given["overwrite"])


class Gh:
    """The command line of GitHub, as far as action.sh uses it."""

    def __init__(self, github: GitHub) -> None:
        self.github = github
        (self.rights,) = github.load("rights")

    def call(self, arguments: list[str]) -> None:
        """Do what a line asks for; exit code 1 where GitHub would refuse."""
        if os.environ.get("GH_TOKEN") != TOKEN:
            raise SystemExit("gh: set the GH_TOKEN environment variable")
        words = {"run list": self.list_runs, "run download": self.download}
        if arguments[0] == "api":
            self.api(arguments[1:])
        else:
            words[" ".join(arguments[:2])](arguments[2:])

    def list_runs(self, arguments: list[str]) -> None:
        """``gh run list``, the last run first."""
        options = _options(arguments, "workflow", "branch", "event", "status", "limit", "repo", "json", "jq")
        assert options.repo == REPOSITORY
        if not self.rights["may_list"]:
            raise SystemExit("HTTP 403: Resource not accessible by integration")
        wanted = {"workflow": options.workflow, "branch": options.branch, "event": options.event}
        wanted["conclusion"] = options.status
        found = [run for run in self.github.load("runs") if wanted.items() <= run.items()]
        answer([{name: run[name] for name in options.json.split(",")} for run in found], options.jq)

    def download(self, arguments: list[str]) -> None:
        """``gh run download``."""
        options = _options(arguments, "name", "dir", "repo", words=1)
        artifact = self.github.artifact(options.words[0], options.name)
        if not artifact.is_dir():
            raise SystemExit("no artifact matches any of the names or patterns provided")
        if fails := self.rights["download_fails"]:  # midway
            Path(options.dir).mkdir()
            raise SystemExit(fails)
        shutil.copytree(artifact, options.dir)

    def api(self, arguments: list[str]) -> None:
        """``gh api``, of comments."""
        switches = {"--paginate", "--silent"} & set(arguments)
        rest = [argument for argument in arguments if argument not in switches]
        options = _options(rest, "method", "field", "jq", words=1)
        comments, path = self.github.load("comments"), options.words[0]
        if options.method is None:
            assert path == f"repos/{REPOSITORY}/issues/7/comments"
            assert "--paginate" in switches
            answer(comments, options.jq)
            return
        if not self.rights["may_write"]:
            raise SystemExit("gh: Resource not accessible by integration (HTTP 403)")
        name, _, file = options.field.partition("=@")
        assert name == "body"
        body = Path(file).read_text(encoding="utf-8")
        if options.method == "POST":
            assert path == f"repos/{REPOSITORY}/issues/7/comments"
            comments.append({"id": 100 + len(comments), "user": {"type": "Bot"}, "body": body})
        else:
            assert options.method == "PATCH"
            (found,) = [each for each in comments if path == f"repos/{REPOSITORY}/issues/comments/{each['id']}"]
            found["body"] = body
        self.github.save(comments=comments)


def _options(arguments: list[str], *names: str, words: int = 0) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for name in names:
        parser.add_argument(f"--{name}")
    options = parser.parse_args(arguments)
    assert len(options.words) == words
    return options


def answer(value: object, filtered: str) -> None:
    """Print what a filter of jq makes of an answer."""
    subprocess.run(["jq", "-r", filtered], input=json.dumps(value), text=True, check=True)


if __name__ == "__main__":
    Gh(GitHub(Path(sys.argv[1]))).call(sys.argv[2:])
