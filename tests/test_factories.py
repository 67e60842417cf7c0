"""Every shipped example sends what it says and reads the answers, judged by what the embedded endpoint saw."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.demo_endpoint import EndpointConfig, start
from tests.shipped import NAMES, ExampleWave, run_example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

SIDE_BY_SIDE = 4
# The route at which an example's requests must arrive; those not named here have a module of tests of their own.
ROUTES = {
    "bedrock/factories_converse": "/model/{id}/converse",
    "bedrock/factories_converse_stream": "/model/{id}/converse-stream",
    "demo/factories_demo": "/invocations",
    "http/factories_http": "/invocations",
    "http/factories_http_sigv4": "/invocations",
    "lambda_function/factories_lambda_function": "/2015-03-31/functions/{name}/invocations",
}
ELSEWHERE: set[str] = set()


def test_no_example_is_forgotten() -> None:
    assert set(NAMES) == set(ROUTES) | ELSEWHERE


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[ExampleWave, list[str]]]]:
    """The wave of an example and the routes at which its requests arrived; they run side by side."""

    def run(name: str) -> tuple[ExampleWave, list[str]]:
        with start(EndpointConfig()) as endpoint:
            wave = run_example(name, endpoint.url, tmp_path_factory.mktemp("example"))
            return wave, endpoint.arrivals()["route"]

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        futures: dict[str, Future[tuple[ExampleWave, list[str]]]] = {name: pool.submit(run, name) for name in ROUTES}
        yield lambda name: futures[name].result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ROUTES)
def test_an_example_works_against_the_embedded_endpoint(
    name: str, waves: Callable[[str], tuple[ExampleWave, list[str]]]
) -> None:
    wave, routes = waves(name)
    assert wave.counts == (20, 0), wave.summary["errors"]
    assert routes == [ROUTES[name]] * 20
