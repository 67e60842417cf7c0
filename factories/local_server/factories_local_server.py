"""A model server on your own machine, started for the measurement and ended after it: it needs no cloud.

For `benchmark capacity --vary workers=1,2`: how many requests per second can each number of workers serve? The server
is this same file, run as a program; put the command of your own server into endpoint_factory. For a server that is
already running: --endpoint-name http://HOST:PORT.
"""

import json
import os
import subprocess
import sys

BYTES = 200  # of a payload
ROUNDS = 90_000  # of the hash that stands for a model: about 20 ms of one core


def endpoint_factory(workers: int = 1, env=None):
    """Start the server, and yield its address. A process that is started here ends with the search in any case."""
    environment = {**os.environ, **{key: str(value) for key, value in (env or {}).items()}}
    command = [sys.executable, __file__, str(workers)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()  # which it says when it is ready
        if not address:
            raise RuntimeError(f"the server ended with {server.wait()}")
        yield address
    finally:
        server.terminate()
        server.wait()


def invoke_factory(endpoint_name=None):
    from geventhttpclient import HTTPClient  # here, as the server does without it

    if endpoint_name is None:
        raise ValueError("no server was given: name it with --endpoint-name http://HOST:PORT")
    client = HTTPClient.from_url(endpoint_name, concurrency=1000, connection_timeout=10, network_timeout=60)

    def invoke(payload):
        response = client.post("/invocations", body=payload, headers={"Content-Type": "application/octet-stream"})
        body = response.read()
        if response.status_code != 200:
            raise RuntimeError(f"{response.status_code}: {body[:200]}")
        return body

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [bytes([number]) * BYTES for number in range(100)]}


def serve(workers):
    """The server: as many requests as there are workers are computed at a time, the others wait for their turn."""
    import hashlib
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    turns = threading.Semaphore(workers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open
        disable_nagle_algorithm = True
        wbufsize = -1  # an answer leaves in one piece

        def do_POST(self):
            payload = self.rfile.read(int(self.headers["Content-Length"]))
            with turns:
                digest = hashlib.pbkdf2_hmac("sha256", payload, b"", ROUNDS)  # other threads run meanwhile
            answer = json.dumps({"digest": digest.hex()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1024

    with Server(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
