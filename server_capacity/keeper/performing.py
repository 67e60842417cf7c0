"""Makes a call or runs a command, and says in words why that failed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from inference_benchmarker.json_file import UNREADABLE
from inference_benchmarker.text import one_line
from server_capacity.keeper.undo import Call

if TYPE_CHECKING:
    from server_capacity.keeper.undo import Undo

CONNECT_S, READ_S, ATTEMPTS = 3, 10, 3
COMMAND_S = 120
_MEANWHILE = {"ConcurrentUpdateException"}  # somebody else's change is under way


class NotDoneError(Exception):
    """It was not done, or nobody knows: why, in words. ``final``: another attempt is of no use.

    ``refused``: the service took the request and made nothing of it, so that nothing has changed.
    """

    def __init__(self, reason: str, *, final: bool, refused: bool = False) -> None:
        super().__init__(reason)
        self.final = final
        self.refused = refused


class GoneError(Exception):
    """That of which something was to be put back is no longer there."""


def perform(action: Undo) -> None:
    """Do it. Raises NotDoneError."""
    if isinstance(action, Call):
        _make(client_of(action), action)
    else:
        _run(action.arguments)


def perform_undo(undo: Undo, account: str | None) -> None:
    """Undo a change, in the account where it was made. Raises NotDoneError and GoneError."""
    if isinstance(undo, Call):
        client = client_of(undo)
        _find_target(client, undo, account)
        _make(client, undo)
    else:
        _run(undo.arguments)


def client_of(call: Call) -> Any:
    """A client of the call's service. Raises NotDoneError where AWS's configuration makes none."""
    return make_client(call.service, call.region)


def make_client(service: str, region: str | None) -> Any:
    """A client that asks a few times, and gives up soon. Raises NotDoneError."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    config = Config(retries=retries, connect_timeout=CONNECT_S, read_timeout=READ_S)
    try:
        return boto3.Session().client(service, region_name=region, config=config)
    except (BotoCoreError, ValueError) as error:
        reason = f"boto3 cannot be set up for {service} ({one_line(str(error), 200)})"
        raise NotDoneError(reason, final=True, refused=True) from None


def ask(client: Any, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call. Raises NotDoneError."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        answer: dict[str, Any] = getattr(client, operation)(**parameters)
    except (BotoCoreError, ClientError, ResponseParserError, *UNREADABLE) as error:
        # with all of CloudWatch, which a keeper rarely needs
        from server_capacity.cloudwatch.failures import call_failure

        name = f"{client.meta.service_model.service_name}:{client.meta.method_to_api_mapping[operation]}"
        failure = call_failure(error, client, name)
        response = error.response if isinstance(error, ClientError) else {}
        meanwhile = response.get("Error", {}).get("Code") in _MEANWHILE
        final = failure.final and not meanwhile
        raise NotDoneError(failure.text, final=final, refused=final and _was_first(response)) from None
    return answer


def _was_first(response: dict[str, Any]) -> bool:
    """Tells whether the service answered the first attempt: of those before nobody knows what became."""
    attempts = response.get("ResponseMetadata", {}).get("RetryAttempts")
    return bool(attempts == 0)


def _make(client: Any, call: Call) -> None:
    ask(client, call.operation, call.parameters)


def _find_target(client: Any, undo: Call, account: str | None) -> None:
    """See that the scalable target is there, and in the account in which it was changed."""
    named = {name: undo.parameters[name] for name in ("ServiceNamespace", "ScalableDimension")}
    asked = {**named, "ResourceIds": [undo.parameters["ResourceId"]]}
    found = next(iter(ask(client, "describe_scalable_targets", asked).get("ScalableTargets", [])), None)
    here = account_of(found) if found else _account_of_credentials(undo.region)
    if here != account and (account is not None or found is None):
        reason = f"it was changed in AWS account {account}, and these credentials are of {here}"
        raise NotDoneError(reason.replace("None", "(not known)"), final=True)
    if found is None:
        raise GoneError


def account_of(target: dict[str, Any]) -> str | None:
    """The account of a scalable target as it is described; None where its name does not tell."""
    parts = str(target.get("ScalableTargetARN", "")).split(":")
    return parts[4] if len(parts) > 5 else None


def _account_of_credentials(region: str) -> str | None:
    try:
        return str(ask(make_client("sts", region), "get_caller_identity", {})["Account"])
    except (NotDoneError, KeyError):
        return None


def _run(arguments: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotDoneError(f"it did not end within {COMMAND_S} s", final=False) from None
    except OSError as error:
        raise NotDoneError(f"it could not be started ({error.strerror})", final=True) from None
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise NotDoneError(f"it ended with {done.returncode}: {one_line(last, 300)}", final=False)
