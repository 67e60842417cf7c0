"""``benchmark endpoint --llm RUN``: the constants of an LLM engine, fitted to a run directory, as flags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.llm.rules import BASE, PROFILES
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.embedded.llm.fit import Constant, Fit
    from inference_benchmarker.wave.wave import Wave

_FLAGS = {"prefill_ms": "ABC", "step_ms": "ABCD"}


def take_fitted(options: dict[str, Any]) -> str:
    """Fill in the flags of the engine that served a run directory which ``--llm`` names, and say what they are."""
    run = options["llm"]
    if run is None or run in PROFILES or not Path(run).is_dir():
        return ""
    fitted = _fitted(Path(run))
    kv_tokens = options["kv_tokens"] or str(PROFILES[BASE].kv_tokens)
    options["llm"] = BASE
    if not kv_tokens.isdecimal():  # which is refused with the other flags
        return ""
    found = fitted.rules(int(kv_tokens))
    for name, constants in zip(_FLAGS, found, strict=True):
        options[name] = options[name] or flag_text(constants)
    return "\n".join(_lines(run, fitted, found, int(kv_tokens)))


def _fitted(path: Path) -> Fit:
    from inference_benchmarker.embedded.llm.fit import fit
    from inference_benchmarker.embedded.llm.measured import streams_of
    from inference_benchmarker.wave.wave import Wave

    try:
        wave = Wave.load(path)
        _refuse_invalid(wave)
        return fit(streams_of(wave))
    except BenchmarkError as error:
        raise BenchmarkError(f"--llm {path}: {error}") from None


def _refuse_invalid(wave: Wave) -> None:
    """Its records are not all that the engine served, or not when it did."""
    if not wave.verdict.valid:
        why = next(each.measured for each in wave.verdict.findings if each.severity == "invalid")
        raise BenchmarkError(
            f"its wave is INVALID ({why}), so it does not show what the engine does.", "Send it again."
        )


def flag_text(constants: Sequence[Constant]) -> str:
    """The value of a flag."""
    return ":".join(f"{each.value:.6g}" for each in constants)


def _lines(run: str, fitted: Fit, found: Sequence[Sequence[Constant]], kv_tokens: int) -> Iterator[str]:
    yield f"Fitted to {fitted.streams:,} streams of {run}, {fitted.idle:,} of which found the engine idle:"
    yield "                        value  95% interval"
    for (flag, letters), constants in zip(_FLAGS.items(), found, strict=True):
        for letter, each in zip(letters, constants, strict=True):
            name = f"--{flag.replace('_', '-')} {letter}"
            yield f"   {name:14} {each.value:>11.5g}  {each.low:.4g} to {each.high:.4g}"
    flags = " ".join(f"--{name.replace('_', '-')}={flag_text(each)}" for name, each in zip(_FLAGS, found, strict=True))
    share = min(1.0, fitted.context / kv_tokens)
    yield f"A TTFT has {fitted.way.value:.2g} ms more than the engine takes. The run had up to {fitted.decodes} answers"
    yield f"at a time, and contexts that fill up to {share:.0%} of {kv_tokens:,} tokens of KV cache (--kv-tokens):"
    yield "what the engine does beyond that is extrapolated. A constant that the run does not show is 0."
    yield f"The same without the run: benchmark endpoint --llm {BASE} --kv-tokens {kv_tokens} {flags}"
