"""Shipped files are found whatever the files of a user are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.system.packaged import demo_factories, demo_metrics, packaged, shown_path

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_file_of_the_users_that_is_called_like_a_package_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "factories.py"
    own.touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert shown_path(own) == str(own)
    assert shown_path(packaged("factories", "http/factories_http.py")) == "http/factories_http"
    assert all(path.is_file() for path in (demo_factories(), demo_factories(chat=True), demo_metrics()))
