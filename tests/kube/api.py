"""The HTTP side of the cluster, as kubectl speaks to it."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.kube import executing
from tests.kube.errors import ApiError, not_found
from tests.kube.protobuf import MAGIC, decoded, openapi_document
from tests.kube.resources import BY_NAME, RESOURCES, Resource, discovery
from tests.kube.selectors import has_fields, has_labels
from tests.kube.store import Key
from tests.kube.tables import ASKED, table
from tests.kube.websocket import WebSocket, answer_to

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.kube.cluster import Cluster
    from tests.kube.store import Change, Object

_WATCH_S = 300.0
_POLL_S = 0.05
_CONTROL = "/control/"
_FAULTS = (
    *("allow", "cut_streams", "deny", "evict", "fill_nodes", "find_node", "freeze", "go_away", "kill_for_memory"),
    *("lose_node", "mend", "miss_image", "pass_time", "rotate_log", "signal_pod"),
)
USER = "tester"


@dataclass(frozen=True, slots=True)
class Place:
    """The place that a path names: of all objects of a kind, of an object, or of something below it."""

    resource: Resource
    namespace: str
    name: str
    below: str

    @property
    def key(self) -> Key:
        """Of its object."""
        return Key(self.resource.name, self.namespace, self.name)


class ApiServer:
    """Serves a cluster on loopback: ``with ApiServer(cluster) as server``."""

    def __init__(self, cluster: Cluster, port: int = 0) -> None:
        self.cluster = cluster
        self.calls: list[str] = []
        methods = {f"do_{verb}": _Handler.serve for verb in ("DELETE", "GET", "PATCH", "POST", "PUT")}
        handler = type("_Handler", (_Handler,), {"api": self, **methods})
        self._server = _Server(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)
        self._thread.start()

    def write_kubeconfig(self, path: Path, namespace: str = "default") -> None:
        """Write the file that KUBECONFIG names."""
        name = "tests"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": USER, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": USER, "namespace": namespace}}],
            "current-context": name,
        }
        path.write_text(json.dumps(config, indent=1))

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error; others have been noted."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ApiServer

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name is the base class's
        self.api.calls.append(format % arguments)

    @property
    def _cluster(self) -> Cluster:
        return self.api.cluster

    def serve(self) -> None:
        """Answer a request of any method."""
        is_control = self.path.startswith(_CONTROL)
        with self._cluster.connected(self.connection) as is_reached:
            if is_reached or is_control:
                self._answer_request()
            else:
                self.close_connection = True

    def _answer_request(self) -> None:
        url = urlsplit(self.path)
        self._query = parse_qs(url.query, keep_blank_values=True)
        size = int(self.headers.get("Content-Length") or 0)
        self._body = self.rfile.read(size)
        try:
            if url.path.startswith(_CONTROL):
                self._control(url.path.removeprefix(_CONTROL))
            elif url.path == "/openapi/v2":
                document_of = openapi_document([each.described_kind() for each in RESOURCES])
                self._answer_bytes(document_of, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
            elif (document := discovery(url.path, self._cluster.version)) is not None:
                self._answer(document)
            else:
                self._objects(_place(url.path))
        except ApiError as error:
            self._answer(error.status(), error.code)
        except OSError:
            self.close_connection = True
        except Exception as error:
            self._cluster.errors.append(f"{self.command} {self.path}: {type(error).__name__}: {error}")
            self._answer(ApiError(500, "InternalError", str(error)).status(), 500)
            raise

    def _asked(self, name: str) -> str:
        return self._query.get(name, [""])[0]

    def _control(self, name: str) -> None:
        """A fault: the path names it, the body has what it is to be given."""
        if name not in _FAULTS:
            raise ApiError(404, "NotFound", f"{name} is none of {', '.join(_FAULTS)}")
        getattr(self._cluster, name)(**json.loads(self._body or b"{}"))
        self._answer({})

    def _objects(self, place: Place) -> None:
        is_watch = self._asked("watch") in ("true", "1")
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
        verb = verbs[self.command]
        if not place.name and verb in ("get", "delete"):
            verb = {"get": "watch" if is_watch else "list", "delete": "deletecollection"}[verb]
        self._check_allowed("create" if place.below == "exec" else verb, place)
        if place.below == "exec":
            self._execute(place)
        elif place.below == "log":
            self._log(place)
        elif place.below == "eviction":
            options = self._object().get("deleteOptions", {})
            self._answer(self._cluster.delete(place.key, grace_s=options.get("gracePeriodSeconds")), 201)
        elif place.below not in ("", "status"):
            raise not_found(f"{place.resource.name}/{place.below}", place.name)
        else:
            getattr(self, f"_{verb}")(place)

    def _check_allowed(self, verb: str, place: Place) -> None:
        what = f"{place.resource.name}/{place.below}" if place.below else place.resource.name
        if (verb, what) in self._cluster.denied:
            where = f' in the namespace "{place.namespace}"' if place.namespace else ""
            message = (
                f'{place.resource.qualified} "{place.name}" is forbidden: User "{USER}" cannot {verb} resource '
                f'"{what}" in API group "{place.resource.group}"{where}'
            )
            raise ApiError(403, "Forbidden", message)

    # one for each verb

    def _create(self, place: Place) -> None:
        wanted = self._object()
        if place.resource.name == "selfsubjectaccessreviews":
            self._answer(self._reviewed(wanted), 201)
            return
        if place.resource.name == "selfsubjectrulesreviews":
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
            self._answer({**wanted, "status": status}, 201)
            return
        if place.resource.namespaced:
            wanted.setdefault("metadata", {}).setdefault("namespace", place.namespace)
        is_strict = self._asked("fieldValidation") == "Strict"
        if self._asked("dryRun"):
            self._answer(wanted, 201)
            return
        self._answer(self._cluster.create(place.resource, wanted, is_strict=is_strict), 201)

    def _reviewed(self, wanted: Object) -> Object:
        asked = wanted["spec"].get("resourceAttributes", {})
        what = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource", ""))))
        return {**wanted, "status": {"allowed": (asked.get("verb"), what) not in self._cluster.denied}}

    def _get(self, place: Place) -> None:
        found = self._cluster.store.get(place.key)
        self._answer(self._shown(place, [found]) if self._wants_table else found)

    @property
    def _wants_table(self) -> bool:
        return ASKED in self.headers.get("Accept", "")

    def _shown(self, place: Place, found: list[Object]) -> Object:
        return table(place.resource.name, found, str(self._cluster.store.version))

    def _list(self, place: Place) -> None:
        with self._cluster.store.changed:
            found = [each for each in self._listed(place) if self._is_asked(each)]
            version = str(self._cluster.store.version)
        resource = place.resource
        if self._wants_table:
            self._answer(self._shown(place, found))
            return
        self._answer(
            {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": {"resourceVersion": version},
                "items": found,
            }
        )

    def _listed(self, place: Place) -> list[Object]:
        return self._cluster.store.of_kind(place.resource.name, place.namespace)

    def _is_asked(self, found: Object) -> bool:
        return has_labels(found, self._asked("labelSelector")) and has_fields(found, self._asked("fieldSelector"))

    def _watch(self, place: Place) -> None:
        if self._asked("sendInitialEvents"):
            raise ApiError(422, "Invalid", "sendInitialEvents: Forbidden: the tests' server has no watch lists")
        store = self._cluster.store
        seen = int(self._asked("resourceVersion") or 0)
        until = time.monotonic() + float(self._asked("timeoutSeconds") or _WATCH_S)
        self._begin_stream("application/json")
        with store.changed:
            matching = [each for each in self._listed(place) if self._is_asked(each)]
            first, seen = ([], seen) if seen else (matching, store.version)
        shown = {each["metadata"]["uid"] for each in matching}
        for each in first:
            self._tell("ADDED", each, place)
        while (left := until - time.monotonic()) > 0:
            with store.changed:
                changes = store.since(seen) or (store.changed.wait(min(left, 1.0)) and store.since(seen)) or []
            for change in changes:
                seen = change.version
                if change.key.resource == place.resource.name and place.namespace in ("", change.key.namespace):
                    self._tell_change(change, shown, place)
            if not changes and self._is_hung_up():
                return
        self._end_stream()

    def _tell_change(self, change: Change, shown: set[str], place: Place) -> None:
        """Tell of a change; what matches the selectors no more is gone for the client."""
        uid = change.found["metadata"]["uid"]
        if self._is_asked(change.found):
            shown.add(uid)
            self._tell(change.kind, change.found, place)
        elif uid in shown:
            shown.remove(uid)
            self._tell("DELETED", change.found, place)

    def _tell(self, kind: str, found: Object, place: Place) -> None:
        if self._wants_table:
            found = self._shown(place, [found])
        self._send_piece(json.dumps({"type": kind, "object": found}).encode() + b"\n")

    def _update(self, place: Place) -> None:
        self._answer(self._cluster.replace(place.resource, place.key, self._object()))

    def _patch(self, place: Place) -> None:
        kind = self.headers.get("Content-Type", "").partition(";")[0]
        self._answer(self._cluster.patch(place.resource, place.key, self._object(), kind))

    def _delete(self, place: Place) -> None:
        options = self._object() if self._body else {}
        wanted = options.get("preconditions", {}).get("uid")
        found = self._cluster.store.get(place.key)
        if wanted not in (None, found["metadata"]["uid"]):
            raise ApiError(409, "Conflict", f"the UID in the precondition ({wanted}) does not match the UID in record")
        grace = options.get("gracePeriodSeconds", self._asked("gracePeriodSeconds") or None)
        policy = options.get("propagationPolicy") or self._asked("propagationPolicy") or "Background"
        self._answer(self._cluster.delete(place.key, grace_s=None if grace is None else int(grace), policy=policy))

    def _deletecollection(self, place: Place) -> None:
        for each in self._listed(place):
            if self._is_asked(each):
                self._cluster.delete(Key(place.resource.name, place.namespace, each["metadata"]["name"]))
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # streams

    def _log(self, place: Place) -> None:
        running = self._cluster.kubelet.running(place.namespace, place.name)
        self._check_reached(place)
        if running.sandbox is None:
            pod = self._cluster.store.get(place.key)
            name = pod["spec"]["containers"][0]["name"]
            states = [each["state"] for each in pod["status"].get("containerStatuses", ())]
            reason = states[0]["waiting"]["reason"] if states and "waiting" in states[0] else "ContainerCreating"
            message = f'container "{name}" in pod "{place.name}" is waiting to start: {reason}'
            raise ApiError(400, "BadRequest", message)
        with running.log.open("rb") as log:
            content = log.read()
            tail = self._asked("tailLines")
            if tail and int(tail) >= 0:
                lines = content.splitlines(keepends=True)
                content = b"".join(lines[len(lines) - int(tail) :] if int(tail) else [])
            self._begin_stream("text/plain")
            if content:
                self._send_piece(content)
            while self._asked("follow") == "true":
                ended = running.sandbox.ended() or running.is_gone.is_set()
                if more := log.read():
                    self._send_piece(more)
                elif ended or self._is_hung_up():
                    break
                else:
                    time.sleep(_POLL_S)
        self._end_stream()

    def _check_reached(self, place: Place) -> None:
        name = self._cluster.store.get(place.key)["spec"].get("nodeName")
        if name in self._cluster.kubelet.silent_nodes:
            raise ApiError(500, "InternalError", f"error dialing backend: dial tcp {name}:10250: i/o timeout")

    def _execute(self, place: Place) -> None:
        pod = self._cluster.store.get(place.key)
        self._check_reached(place)
        if pod["status"].get("phase") != "Running":
            raise ApiError(
                400,
                "BadRequest",
                f"cannot exec into a container in a completed pod; current phase is {pod['status'].get('phase')}",
            )
        sandbox = self._cluster.kubelet.running(place.namespace, place.name).sandbox
        key = self.headers.get("Sec-WebSocket-Key")
        offered = [each.strip() for each in self.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        chosen = next((each for each in executing.PROTOCOLS if each in offered), None)
        if key is None or chosen is None or self._asked("tty") == "true" or sandbox is None:
            raise ApiError(400, "BadRequest", "the tests' server executes over WebSocket, without a terminal")
        self.send_response(101, "Switching Protocols")
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", answer_to(key))
        self.send_header("Sec-WebSocket-Protocol", chosen)
        self.end_headers()
        self.close_connection = True
        streams = {name for name in ("stdin", "stdout", "stderr") if self._asked(name) == "true"}
        channel = WebSocket(self.connection, self.rfile)
        executing.execute(sandbox, self._query.get("command", []), streams, channel, self._let_through())

    def _let_through(self) -> Any:
        """Asked before a block is sent: the connection breaks after so many bytes, where that was wanted."""
        left = self._cluster.take_cut()

        def is_let_through(size: int) -> bool:
            nonlocal left
            if left is None:
                return True
            left -= size
            if left < 0:
                with suppress(OSError):
                    self.connection.shutdown(2)
                return False
            return True

        return is_let_through

    # HTTP

    def _object(self) -> Any:
        if self._body.startswith(MAGIC):
            return decoded(self._body)
        try:
            return json.loads(self._body or b"{}")
        except ValueError as error:
            raise ApiError(400, "BadRequest", f"the body is no JSON: {error}") from None

    def _answer(self, document: Any, code: int = 200) -> None:
        self._answer_bytes(json.dumps(document).encode(), "application/json", code)

    def _answer_bytes(self, content: bytes, kind: str, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _begin_stream(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _send_piece(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _is_hung_up(self) -> bool:
        """Tells whether the client is gone; it says nothing while it listens."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, 2)  # it stays in the socket: MSG_PEEK
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)


def _place(path: str) -> Place:
    """The place of a path. ApiError where nothing is there."""
    steps = path.strip("/").split("/")
    group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1] if len(steps) > 1 else "", steps[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name, _, below = "/".join(rest[1:]).partition("/")
    resource = BY_NAME.get((group, rest[0] if rest else ""))
    if resource is None:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return Place(resource, namespace, name, below)
