"""An environment full of secrets, an endpoint that echoes them, and a judge who opens whatever a command left.

The spellings are those of the fault table, made anew there: nothing of what hides them is asked.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
import zipfile
from contextlib import closing, suppress
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import getsource
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

import psutil
import pyarrow.parquet as pq
from PIL import Image
from pyarrow import ipc

from tests.faults.fault import spellings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench import Bench, Finished, Running

ASKED = "FOREST"
PLANTED = {
    "BASIC_AUTH": "me:4pl3s-0r4ng3s&m0re",
    "SESSION_JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzY2VuZSJ9.c2NlbmUtb2YtYWxs",
    "CHAT_WEBHOOK": "https://hooks.example/T0SCENE/B0SCENE/x9Yz8Wv7Ut6S",
    "CLIENT_PEM": "-----BEGIN SCENE-----\nMIIscene1+first/line=\nMIIscene2+second/line\n-----END SCENE-----",
    "PASS_CODE": "pass code of the scene",
    "SERVICE_KEY": "k/9f3a7c+scene&key=50%.of",
    "MODEL_TOKEN": "hf_SceneSceneScene12345",
    "STORE_PASSWORD": 'quo"te\\d<scene>',
    ASKED: "5d8e2c91bc63a74988e1",
}
LINES = sorted({line for value in PLANTED.values() for line in value.splitlines() if "SCENE--" not in line})
FOUND = sorted({each for line in LINES for each in spellings(line)})


def spelt(value: str) -> list[str]:
    """A value as programs write it: the factories file prints this, and the endpoint answers with it."""
    data = value.encode()
    in_base64 = [base64.b64encode(b"x" * before + data).decode() for before in range(3)]
    urls = [quote(value, safe=safe) for safe in ("", "/", ";,/?:@&=+$!*'()#", "/:@!$&'()*+,;=")]
    of_go = "".join(f"{chr(92)}u{ord(sign):04x}" if sign in "&<>" else sign for sign in json.dumps(value))
    of_php = json.dumps(value).replace("/", chr(92) + "/")
    in_html = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&#34;")
    numbers = "".join(f"&#{ord(sign)};" for sign in value)
    escaped = [json.dumps(value), of_go, of_php, json.dumps(of_php), repr(value), in_html, numbers]
    return [value, *urls, data.hex(), *escaped, *in_base64]


TELLING = f"""
import base64, json, os, sys
from urllib.parse import quote

{getsource(spelt)}

FOREST = os.environ["{ASKED}"]
VALUES = [FOREST, *(os.environ[name] for name in {sorted(set(PLANTED) - {ASKED})})]
TOLD = " | ".join(each for value in VALUES for each in spelt(value))
print("told", TOLD, flush=True)
print("told", TOLD, file=sys.stderr, flush=True)
"""
FACTORIES = f"""
from geventhttpclient import HTTPClient

from inference_benchmarker import Response, created
{TELLING}

class RefusedError(Exception):
    pass


def endpoint_factory(size: int = 1, instances: int = 1, kind: str = "small"):
    print("making it with", TOLD)
    created(["true"])
    yield os.environ["TARGET"]
    raise RuntimeError("not removed: " + TOLD)


def invoke_factory(endpoint_name=None):
    client = HTTPClient.from_url(os.environ["TARGET"], concurrency=100)
    headers = {{"Authorization": "Bearer " + FOREST, "X-Api-Key": os.environ["SERVICE_KEY"]}}

    def invoke(payload):
        answer = client.post("/invocations", body=payload, headers=headers)
        data = bytes(answer.read()).decode()
        if answer.status_code != 200:
            print("refused", data, file=sys.stderr)
            raise RefusedError(f"{{answer.status_code}} {{answer.headers}} {{data}}")
        return Response(finish_reason="stop " + FOREST, model="model of " + VALUES[1])

    return invoke


def payload_factory(size: int = 1):
    return {{"pre_computed": True, "input": [(TOLD * size).encode()], "label": lambda _: "label " + VALUES[2]}}
"""


class Echo:
    """An endpoint that answers with all that it was sent and with all secrets; ``with`` starts and ends it.

    Of so many answers one is an error (0: none).
    """

    def __init__(self, errors: int = 4) -> None:
        numbers = count(1)
        text = " | ".join(each for value in PLANTED.values() for each in spelt(value))

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(errors="replace")
                echoed = json.dumps({"told": text, "body": body, "headers": str(self.headers)}).encode()
                self.send_response(500 if errors and next(numbers) % errors == 0 else 200, PLANTED["SERVICE_KEY"])
                self.send_header("X-Debug", PLANTED["MODEL_TOKEN"])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(echoed)))
                self.end_headers()
                self.wfile.write(echoed)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/invocations"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Scene:
    """A folder in which commands run one after the other in that environment; ``seen``: lines of processes."""

    bench: Bench
    url: str
    folder: Path = field(init=False)
    seen: set[str] = field(default_factory=set)
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = self.bench.folder()
        (self.folder / "tmp").mkdir()
        (self.folder / "f.py").write_text(FACTORIES)

    def run(self, *arguments: object, code: int | None = None) -> Finished:
        """Run a command to its end, and judge it and all that is in the folder."""
        variables = {**PLANTED, "TMPDIR": str(self.folder / "tmp"), "TARGET": self.url.removesuffix("/invocations")}
        running = self.bench.start(*arguments, factories=None, environment=variables, folder=self.folder)
        over = Event()
        watcher = Thread(target=self._watch, args=(running, over))
        watcher.start()
        try:
            finished = running.finish(timeout=400)
        finally:
            over.set()
            watcher.join()
        assert code is None or finished.code == code, (finished.code, finished.err)
        assert "Traceback" not in finished.out, finished.out
        self.printed += [finished.out, finished.err]
        self.judge(*arguments)
        return finished

    def one(self, pattern: str) -> Path:
        """The only folder of that name among the results."""
        (found,) = (self.folder / "runs").glob(pattern)
        return found

    def judge(self, *value: object) -> None:
        """Raise AssertionError for a secret in a file, in what was printed, or in the line of a process."""
        texts = {"printed": "\n".join(self.printed), "/proc/*/cmdline": "\n".join(self.seen)}
        own = {"f.py", "users.py", "own.json"}  # which the user wrote
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in own:
                texts[str(path.relative_to(self.folder))] = opened(path)
        left = {name: each for name, text in texts.items() for each in holding(text)}
        assert not left, (value, left)

    def _watch(self, running: Running, over: Event) -> None:
        while not over.wait(0.03):
            with suppress(psutil.Error, OSError):
                for process in [(own := psutil.Process(running.process.pid)), *own.children(recursive=True)]:
                    self.seen.add(Path(f"/proc/{process.pid}/cmdline").read_text(errors="replace").replace("\0", " "))


def holding(text: str) -> list[str]:
    """The secrets that a text holds: as it stands, or unescaped as HTML, JSON (also in JSON) or a URL."""
    readings = {text, unescape(text), unquote(text), of_json(text), of_json(of_json(text))}
    return [each for reading in readings for each in FOUND if each in reading]


def of_json(text: str) -> str:
    """A text without what JSON escapes in it."""
    numbers = re.sub(r"\\u00([0-7][0-9a-f])", lambda code: chr(int(code[1], 16)), text)
    return re.sub(r"\\(.)", r"\1", numbers)


def opened(path: Path) -> str:
    """All that stands in a file, unpacked."""
    data = path.read_bytes()
    return "\n".join([data.decode(errors="replace"), *_unpacked(path, data)])


def _unpacked(path: Path, data: bytes) -> list[str]:
    unpack = next((unpack for begin, unpack in _PACKED.items() if data.startswith(begin)), None)
    return [] if unpack is None else unpack(path)


def _of_zip(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name).decode(errors="replace") for name in archive.namelist()]


def _of_sqlite(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as found:
        return list(found.iterdump())


def _of_picture(path: Path) -> list[str]:
    with Image.open(path) as picture:
        return [str(picture.info)]


_PACKED: dict[bytes, Callable[[Path], list[str]]] = {
    b"PAR1": lambda path: [str(pq.read_table(path).to_pylist()), str(pq.read_schema(path).metadata)],
    b"ARROW1": lambda path: [str(ipc.open_file(path).read_all().to_pylist())],
    b"\x1f\x8b": lambda path: [gzip.decompress(path.read_bytes()).decode(errors="replace")],
    b"PK\3\4": _of_zip,
    b"SQLite format 3": _of_sqlite,
    b"\x89PNG": _of_picture,
}
