"""Keeps secrets out of what is written and shown: given values, and credentials by their form.

``secret_values`` says which values are secrets, ``spellings`` in which spellings they are found.
Time is linear in the text, whatever it holds: each pattern begins at a place that few texts have, and what it
reads from there is read from no other place (bounded repetitions, or runs that cannot overlap).
"""

from __future__ import annotations

import re
from reprlib import Repr
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.words.secret_encodings import begun, longest, places
from inference_benchmarker.words.secret_values import (
    ADDRESSES,
    ASKED_FOR,
    HEADERS,
    asked_for,
    hide_values_of,
    looks_random,
    own_secrets,
    secret_values,
    up_to_hosts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [  # with what its callers ask of the values
    "ADDRESSES",
    "ASKED_FOR",
    "CUT",
    "HEADERS",
    "HIDDEN",
    "MOST_UNDECIDED",
    "asked_for",
    "beginning",
    "decided",
    "excerpt",
    "hidden",
    "hide_values_of",
    "looks_random",
    "own_secrets",
    "part",
    "quoted",
    "redact",
    "secret_values",
    "up_to_hosts",
    "without",
    "written",
]

HIDDEN = "[hidden]"
CUT = "…"
_QUOTE = r"(?:\\{0,4}+[\"']|%2[27])"
# Between a name and its value: as in a header, an assignment, JSON (also within JSON), a URL, Ruby, a tuple.
_SEPARATOR = (
    rf"(?:{_QUOTE}?+[ \t]*+(?:=>|[=:]|%3[AD])\s*+|[\"'],\s*+(?=b?[\"']))"
    rf"(?:\[(?=b?{_QUOTE}))?+(?:b?{_QUOTE})?+"
)
_WORD_VALUE = r"[^\s\"'&,;]{4,}+"
_VALUE = rf"(?:(?<=\")[^\"\r\n]{{4,}}+|(?<=')[^'\r\n]{{4,}}+|{_WORD_VALUE})"
_NO_WORD = r"(?!(?-i:: [A-Z]?+[a-z]{1,14}+)[.!?)]?+(?:[\s\"'&,;]|\Z))"  # as behind what a message is about
_NAME = (
    r"(?:(?:api|access|secret|private|account|subscription|signing|auth)[-_]?key"
    r"|(?<!/)(?:secret|passw(?:or)?d|passphrase)"
    rf"|(?<=/)(?:secret|passw(?:or)?d|passphrase){_NO_WORD}"  # "/etc/passwd: Permission denied" is about a file
    r"|(?<=[_;-])p(?:ass|wd)"
    rf"|(?:token|signature|credential){_NO_WORD})"  # "invalid token: expired" is about an error
)
_SCHEME = r"(?:Bearer|Basic|Token|Api-?Key|Key|Digest|Negotiate|NTLM|Bot|SharedKey|AWS4-HMAC-SHA256)(?:\s++|%20|\+)"
_NO_VALUE = r"(?!(?:auth\w{0,12}|credentials?|tokens?|realm=?|scheme|headers?|format|errors?|requests?)\b)"
_NO_FLAG = r"(?!(?-i:: expected (?:one|at least one|\d{1,3}) arguments?\b))"  # "--api-key: expected one argument"
_IN_A_QUERY = r"(?:\A|(?<=[?&]))"
# What goes on behind the end of a line: a name whose value stands below, a key that has no end yet.
_SEPARATING = r"(?:[\s\"'\\=:>,\[b]|%2[27]|%3[AD])*+"
_SEPARATED = rf"{_QUOTE}?+(?:[ \t]*+(?:=>|[=:]|%3[AD])|(?<=[\"']),)"
_NO_VALUE_YET = re.compile(
    rf"(?:(?:{_NAME}|cookie|authorization){_SEPARATED}|authorization{_SEPARATED}{_SEPARATING}[A-Z0-9-]{{1,20}}+"
    rf"|bearer|basic){_SEPARATING}\Z",
    re.IGNORECASE,
)
_NO_END_YET = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----(?:[\w+/=\s\\:,.│┃║|>]|-(?!----))*+\Z")
_SEPARATORS = " \t\r\n\"'\\=:>,[bB%237aAdD"
_LONGEST_NAME = 64
MOST_UNDECIDED = 1 << 16
"""Characters of which ``decided`` looks at the last: what is longer is no key on lines."""
_REPR = Repr()
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 10_000  # characters; of more it leaves out those in the middle
_LAST_WORD = re.compile(rf"(?<![^\s\"'&,;\]{CUT}])[^\s\"'&,;\]{CUT}]*+{CUT}\Z")


class _Pattern(NamedTuple):
    """A form of credentials: ``hints``, in lower case, one of which stands in every text that has one."""

    hints: tuple[str, ...]
    regex: re.Pattern[str]
    replacement: str


def _pattern(hints: str, regex: str, flags: int = re.IGNORECASE) -> _Pattern:
    """One that keeps what its group ``keep`` matches, if it has one."""
    compiled = re.compile(regex, flags)
    kept = r"\g<keep>" if compiled.groups else ""
    return _Pattern(tuple(hints.split()), compiled, kept + HIDDEN)


_PATTERNS = (
    _pattern(
        "-----begin",
        r"(?P<keep>-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----)"
        r"(?:[\w+/=\s\\:,.│┃║|>]|-(?!----))++(?:-----END [A-Z0-9 ]{0,60}+-----)?+",
        0,
    ),
    _pattern("://", r"(?<=://)[^/\s?#\"]*(?=@)"),
    _pattern(r":\/\/", r"(?<=:\\/\\/)[^/\\\s?#\"]*(?=@)"),
    _pattern("cookie", rf"(?P<keep>cookie{_SEPARATOR})[^\s=;,\"'()]{{1,200}}+=[^\r\n\"'\\]++"),
    _pattern("authorization", rf"(?P<keep>authorization{_SEPARATOR}{_SCHEME}){_WORD_VALUE}"),
    _pattern(
        "authorization",  # of a scheme that is not known: what has a digit or is long is no word
        rf"(?P<keep>authorization{_SEPARATOR}(?:[A-Z-]{{1,15}}+[ \t]++)?)"
        rf"(?=[A-Z_.~+/=-]{{0,64}}+[0-9]|[^\s\"'&,;]{{16}}){_WORD_VALUE}",
    ),
    _pattern("bearer basic", rf"(?P<keep>\b(?:Bearer|Basic)(?:\s++|%20|\+)){_NO_VALUE}[A-Za-z0-9._~+/=-]{{6,}}+"),
    _pattern("key secret pass pwd token signature credential", rf"(?P<keep>{_NAME}{_NO_FLAG}{_SEPARATOR}){_VALUE}"),
    _pattern("key> token> password> secret>", r"(?P<keep>(?:AccessKey|Token|Password|Secret)>)[^<>\s]{4,}+(?=</)"),
    # A query may stand alone, as a setting does.
    _pattern(
        "key= sig= pwd= pass= auth= jwt=", rf"(?P<keep>{_IN_A_QUERY}(?:key|sig|pwd|pass|auth|jwt)=)[^\s\"'&,;#]{{8,}}+"
    ),
    _pattern("code=", rf"(?P<keep>{_IN_A_QUERY}code=)[^\s\"'&,;#]{{24,}}+"),  # an Azure function's key is so long
    _pattern("akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}+\b", 0),
    _pattern("iqojb3jpz2lu ogzxivyxdz aqodyxdz", r"\b(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz|AQoDYXdz)[\w+/=%-]{16,}+", 0),
    _pattern("eyj", r"\beyJ[\w-]{12,}+(?:\.[\w-]++)*+", 0),
    _pattern(
        "sk- sk_ rk_ hf_ hf- ghp ghu gho ghs ghr github_pat glpat gsk nvapi r8_ pplx xox xapp aiza ya29",
        r"\b(?:(?:sk|rk|hf|gh[oprsu]|github_pat|glpat|gsk|nvapi|r8|pplx|xox[abeprs]|xapp)[-_]|ya29\.|AIza)[\w-]{16,}+",
        0,
    ),
)


_ESCAPED_LINE = "%41 line with an escape, and another\nthat ends it\n"


def redact(text: str, also: Iterable[str] = ()) -> str:
    """The text with credentials replaced: by their form, and what ``without`` replaces."""
    return _without_forms(without(text, also))


def hidden(text: str) -> str:
    """The text as logs and standard error have it: without this process's secrets that are numbers, too."""
    return redact(text, own_secrets(with_numbers=True))


def prepare() -> None:
    """Compute what is looked for, which takes a millisecond for each line of a long key: before a wave, not within."""
    for with_numbers in (False, True):
        secrets = own_secrets(with_numbers=with_numbers)
        without(_ESCAPED_LINE, secrets)
        decided(_ESCAPED_LINE, secrets)


def _without_forms(text: str) -> str:
    lowered = text.lower()
    for hints, regex, replacement in _PATTERNS:
        for hint in hints:  # most texts have none, and looking for them is all that they cost
            if hint in lowered:
                text = regex.sub(replacement, text)
                break
    return text


def without(text: str, also: Iterable[str] = ()) -> str:
    """The text with the values of secrets replaced: what is data must keep what only looks like one.

    They are those of this process's environment (see ``hide_values_of``), which nobody can leave out, and ``also``. Of
    secrets that overlap nothing is left, and one ``HIDDEN`` stands for them.
    """
    pieces, begin = [], 0
    for start, end in places(text, _own_and(also)):
        pieces += [text[begin:start], HIDDEN]
        begin = end
    return "".join((*pieces, text[begin:])) if pieces else text


def decided(text: str, also: Iterable[str] = ()) -> int:
    """The length of a text's beginning, whole lines, that ``redact`` leaves alike whatever comes behind the text.

    Behind it may stand the beginning of a secret that goes on in the next lines. Redacted apart, what is decided and
    what follows are what they are in the redacted whole.
    """
    secrets = _own_and(also)
    end = text.rfind("\n") + 1
    piece = text[max(end - MOST_UNDECIDED, 0) : end]
    cut = _line_of(piece, min(begun(piece, secrets), _begun_by_form(piece)))
    taken = places(piece, secrets) if cut < len(piece) else []
    while 0 < cut < len(piece):
        across = [start for start, stop in taken if start < cut < stop]
        start = min(*across, _begun_across(piece, cut), cut)
        if start == cut:
            break
        cut = _line_of(piece, start)
    return end - len(piece) + cut if cut else text.rfind("\n", 0, end - len(piece)) + 1


def _line_of(text: str, place: int) -> int:
    """The beginning of the line in which a place is; a place behind the text stays."""
    return place if place == len(text) else text.rfind("\n", 0, place) + 1


def _begun_across(text: str, cut: int) -> int:
    """The place of a credential by its form that goes on behind a cut; the cut where none does."""
    start = _begun_by_form(text[:cut])
    if start == cut or _without_forms(text[start:cut]) + _without_forms(text[cut:]) == _without_forms(text[start:]):
        return cut
    return start


def _begun_by_form(text: str) -> int:
    """The place of a credential by its form that goes on behind a text; its length where there is none."""
    starts = [len(text)]
    if block := "-----BEGIN" in text and _NO_END_YET.search(text):
        starts.append(block.start())
    lately = len(text.rstrip(_SEPARATORS)) - _LONGEST_NAME
    if name := _NO_VALUE_YET.search(text, max(lately, 0)):
        starts.append(name.start())
    return min(starts)


def beginning(text: str, limit: int, also: Iterable[str] = ()) -> str:
    """At most ``limit`` characters of what ``without`` leaves of the text; no secret is cut in half.

    ``CUT`` stands for what was cut off. Little more than the limit is looked at, whatever the text's length.
    """
    also = tuple(also)
    spare = 2 * longest(_own_and(also))
    piece = text[: limit + spare]
    clean = without(piece, also)
    if len(piece) < len(text):  # a secret that the piece has half of lies within what is left out
        clean = clean[: max(len(clean) - spare, 0)] + CUT
    return clean if len(clean) <= limit else clean[: limit - 1] + CUT


def excerpt(text: str, limit: int, also: Iterable[str] = ()) -> str:
    """At most ``limit`` characters of the redacted text; no credential is shown that a cut left half of."""
    clean = redact(beginning(text, 4 * limit, also))
    if len(clean) <= limit and clean.endswith(CUT):
        clean = _LAST_WORD.sub(CUT, clean)
    return clean[:limit]


def quoted(text: str, limit: int = 100) -> str:
    """An excerpt within quotes: a value that was given, as an error shows it."""
    return repr(excerpt(text, limit))


def written(value: object, limit: int = 100) -> str:
    """An excerpt of a value of any type, as Python writes it; of a large one little is looked at."""
    return excerpt(_REPR.repr(value), limit)


def part(text: str, start: int, end: int, also: Iterable[str] = ()) -> str:
    """The part of a text between two places, hidden as in the whole of it: it may be half of a secret."""
    pieces, begin = [], start
    for first, last in places(text, _own_and(also)):
        if first < end and last > start:
            pieces += [text[begin:first], HIDDEN]
            begin = min(last, end)
    return _without_forms("".join((*pieces, text[begin:end])))


def _own_and(also: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own_secrets(), *also)))
