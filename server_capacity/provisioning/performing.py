"""Makes a call or runs a command, and says in words why that failed."""

from __future__ import annotations

import re
import socket
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from inference_benchmarker.data.json_file import UNREADABLE
from inference_benchmarker.engine.processes.child_logs import hidden
from inference_benchmarker.engine.processes.leftovers import end_leftovers
from inference_benchmarker.system.output import EndlessOutputError, output_of
from inference_benchmarker.words.text import one_line
from server_capacity.metrics import aws_client
from server_capacity.provisioning.undo import MARK, Call, CommandLine

if TYPE_CHECKING:
    from server_capacity.metrics.aws_failures import Failure
    from server_capacity.provisioning.undo import Undo

CONNECT_S, READ_S, ATTEMPTS = 3, 10, 3
COMMAND_S = 120
SIMULATED = ("123456789012", "000000000000")
"""The accounts of the embedded endpoint and of moto, and of LocalStack. They are nobody's."""

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_GONE = re.compile(r"NotFound|NoSuch|not find|does not exist|not found", re.IGNORECASE)
_BUSY = re.compile(
    r"InUse|in use|in[- ]progress|creating|updating|deleting|Conflict|Concurrent|has inference comp",
    re.IGNORECASE,
)
"""How AWS's services tell what is no longer there, and what can be deleted later. SageMaker says both in words."""

_MEANWHILE = {"ConcurrentUpdateException"}  # somebody else's change is under way


class NotDoneError(Exception):
    """It was not done, or nobody knows: why, in words. ``final``: another attempt is of no use.

    ``refused``: the service took the request and made nothing of it, so that nothing has changed. ``busy``: it can be
    done once something else is over, which may take minutes.
    """

    def __init__(self, reason: str, *, final: bool, refused: bool = False, busy: bool = False) -> None:
        super().__init__(reason)
        self.final = final
        self.refused = refused
        self.busy = busy


class GoneError(Exception):
    """That of which something was to be put back is no longer there."""


def perform(action: Undo) -> None:
    """Do it. Raises NotDoneError."""
    if isinstance(action, Call):
        _make(client_of(action), action)
    elif isinstance(action, CommandLine):
        _run(action.arguments)
    else:
        end_leftovers(action.mark, (), MARK)


def perform_undo(undo: Undo, account: str | None) -> None:
    """Undo a change, at the address and in the account where it was made. Raises NotDoneError and GoneError."""
    if not isinstance(undo, Call):
        perform(undo)
        return
    if _was_simulated(undo.endpoint_url, account):
        raise GoneError
    client = client_of(undo)
    if undo.removes:
        if account is not None:
            _check_account(account_of_credentials(undo.region), account)
        _remove(client, undo)
    else:
        _find_target(client, undo, account)
        _make(client, undo)


def client_of(call: Call) -> Any:
    """A client of the call's service at the call's address. Raises NotDoneError where AWS's configuration makes none.

    An address of AWS's own is not set: a service that is signed for another region than the client's would refuse it.
    """
    address = call.endpoint_url
    client = make_client(call.service, call.region)
    if address is None or client.meta.endpoint_url == address:
        return client
    client = make_client(call.service, call.region, ignore_configured_endpoint_urls=True)
    if client.meta.endpoint_url == address:
        return client
    return make_client(call.service, call.region, address)


def placed(call: Call) -> Call:
    """The call with the address at which it is made: its own, or else the configured one. Raises NotDoneError."""
    if call.endpoint_url is not None:
        return call
    return replace(call, endpoint_url=make_client(call.service, call.region).meta.endpoint_url)


def make_client(service: str, region: str | None, address: str | None = None, **settings: bool) -> Any:
    """A client that asks a few times, and gives up soon. Raises NotDoneError.

    ``address``: None for the configured one. ``settings``: others of botocore's.
    """
    from botocore.exceptions import BotoCoreError

    patience = {"attempts": ATTEMPTS, "connect_s": CONNECT_S, "read_s": READ_S}
    try:
        return aws_client.make_client(service, region, endpoint_url=address, **patience, **settings)
    except (BotoCoreError, ValueError) as error:
        reason = f"boto3 cannot be used for {service} ({one_line(str(error), 200)})"
        raise NotDoneError(reason, final=True, refused=True) from None


def check_call(call: Call) -> None:
    """ValueError for a service, an operation or parameters that boto3 does not know, before anything is asked."""
    from botocore import xform_name
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    try:
        model = get_session().get_service_model(call.service)
    except BotoCoreError as error:
        raise ValueError(one_line(str(error), 300)) from None
    names = {xform_name(name): name for name in model.operation_names}
    if call.operation not in names:
        raise ValueError(f"boto3's {call.service} has no {call.operation}")
    report = ParamValidator().validate(call.parameters, model.operation_model(names[call.operation]).input_shape)
    if report.has_errors():
        raise ValueError(f"{call.service} {call.operation}: {one_line(report.generate_report(), 300)}")


def ask(client: Any, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call. Raises NotDoneError."""
    try:
        answer: dict[str, Any] = getattr(client, operation)(**parameters)
    except _failures() as error:
        raise _not_done(error, client, operation) from None
    return answer


def _failures() -> tuple[type[Exception], ...]:
    """All that a call of boto3 raises."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    return (BotoCoreError, ClientError, ResponseParserError, *UNREADABLE)


def _not_done(error: Exception, client: Any, operation: str) -> NotDoneError:
    failure, response = _failure(error, client, operation), _response(error)
    meanwhile = response.get("Error", {}).get("Code") in _MEANWHILE
    final = failure.final and not meanwhile
    return NotDoneError(failure.text, final=final, refused=final and _was_first(response))


def _failure(error: Exception, client: Any, operation: str) -> Failure:
    # with all of CloudWatch, which a keeper rarely needs
    from server_capacity.metrics.aws_failures import call_failure

    name = f"{client.meta.service_model.service_name}:{client.meta.method_to_api_mapping[operation]}"
    return call_failure(error, client, name)


def _response(error: Exception) -> dict[str, Any]:
    """AWS's answer that is an error; empty for all else that a call raises."""
    return getattr(error, "response", None) or {}


def _was_first(response: dict[str, Any]) -> bool:
    """Tells whether the service answered the first attempt: of those before nobody knows what became."""
    attempts = response.get("ResponseMetadata", {}).get("RetryAttempts")
    return bool(attempts == 0)


def _make(client: Any, call: Call) -> None:
    ask(client, call.operation, call.parameters)


def _was_simulated(address: str | None, account: str | None) -> bool:
    """Tells whether it was made by a simulator of AWS on this machine that runs no more, and is gone with it.

    The account tells it from a tunnel that leads to AWS from here.
    """
    if address is None or account not in SIMULATED:
        return False
    parts = urlsplit(address)
    if parts.hostname not in _THIS_MACHINE:
        return False
    try:
        socket.create_connection((parts.hostname, parts.port or 80), CONNECT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _find_target(client: Any, undo: Call, account: str | None) -> None:
    """See that the scalable target is there, and in the account in which it was changed."""
    named = {name: undo.parameters[name] for name in ("ServiceNamespace", "ScalableDimension")}
    asked = {**named, "ResourceIds": [undo.parameters["ResourceId"]]}
    found = next(iter(ask(client, "describe_scalable_targets", asked).get("ScalableTargets", [])), None)
    here = account_of(found) if found else account_of_credentials(undo.region)
    if account is not None or found is None:
        _check_account(here, account)
    if found is None:
        raise GoneError


def _check_account(here: str | None, account: str | None) -> None:
    if here != account:
        reason = f"it was changed in AWS account {account}, but these credentials belong to {here}"
        raise NotDoneError(reason.replace("None", "(not known)"), final=True)


def _remove(client: Any, call: Call) -> None:
    """Make a call that takes something away. Only credentials that are refused make another attempt useless.

    An endpoint that is being created cannot be deleted yet, nor what another resource still uses.
    """
    try:
        getattr(client, call.operation)(**call.parameters)
    except _failures() as error:
        error_body = _response(error).get("Error", {})
        said = f"{error_body.get('Code')}: {error_body.get('Message')}"
        if _GONE.search(said):
            raise GoneError from None
        failure = _failure(error, client, call.operation)
        final = failure.final and failure.every_call
        raise NotDoneError(failure.text, final=final, busy=not final and bool(_BUSY.search(said))) from None


def account_of(target: dict[str, Any]) -> str | None:
    """The account of a scalable target as it is described; None where its name does not say."""
    parts = str(target.get("ScalableTargetARN", "")).split(":")
    return parts[4] if len(parts) > 5 else None


def account_of_credentials(region: str) -> str | None:
    """The account of AWS that the configured credentials are of; None where it is unknown."""
    try:
        return str(ask(make_client("sts", region), "get_caller_identity", {})["Account"])
    except (NotDoneError, KeyError):
        return None


def _run(arguments: tuple[str, ...]) -> None:
    try:
        done = output_of(arguments, COMMAND_S)
    except subprocess.TimeoutExpired:
        raise NotDoneError(f"it did not end within {COMMAND_S} s", final=False) from None
    except EndlessOutputError as error:
        raise NotDoneError(str(error), final=False) from None
    except OSError as error:
        raise NotDoneError(f"it could not be started ({error.strerror})", final=True) from None
    if done.returncode != 0:
        last = hidden()(done.stderr.decode(errors="replace")).strip().rpartition("\n")[2]  # as in the whole of it
        said = f": {one_line(last, 300)}" if last else ""
        raise NotDoneError(f"it ended with {done.returncode}{said}", final=False)
