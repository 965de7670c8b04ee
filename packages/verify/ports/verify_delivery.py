"""Verifies that a request is a delivery of a webhook of yours: signed with its secret, just now.

One file for Python 3.8 and later, without dependencies: copy it into your receiver. It has the rule of
src/verify-delivery.cjs, and packages/verify/test/ports.test.ts runs both on the same requests.

    import verify_delivery

    @app.post("/hook")                                            # Flask
    def hook():
        if not verify_delivery.verify(request.headers, request.get_data(), [os.environ["WEBHOOK_SECRET"]]):
            abort(401)
        take(request.get_json())
        return "", 200
"""

import hashlib
import hmac
import math
import re
import time
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple, Union

TOLERANCE_SECONDS = 300
# The first of each row that is there: the second name is Customer.io's.
_TIMESTAMP_HEADERS = ("x-svc-timestamp", "x-cio-timestamp")
_SIGNATURE_HEADERS = (("x-svc-signature", "x-cio-signature"), ("x-svc-signature-next",))
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")

Headers = Union[Mapping[str, str], Iterable[Tuple[str, str]]]


def verify(headers: Headers, body: bytes, secrets: Union[str, Sequence[str]], **options: float) -> bool:
    """True where the request was signed with one of the secrets, within the tolerance.

    body is the raw body, exactly as it came. secrets has the webhook's secret; while it is rotated, the old and the
    new one, in a list. Options: tolerance_seconds, and now (Unix seconds). Raises ValueError where there is no secret or an
    empty one, which anybody could sign with, where an option is no finite number, and where the body is no bytes.
    """
    return why_refused(headers, body, secrets, **options) is None


def why_refused(
    headers: Headers,
    body: bytes,
    secrets: Union[str, Sequence[str]],
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: Optional[float] = None,
) -> Optional[str]:
    """Why verify says False, for your log: never tell it to the caller. None where it says True."""
    now = time.time() if now is None else now
    for name, value in (("tolerance_seconds", tolerance_seconds), ("now", now)):
        # With NaN no request would ever be too old.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(name + " must be a finite number")
    keys: List[str] = list(secrets) if isinstance(secrets, (list, tuple)) else [secrets]
    if None in keys:
        raise ValueError("the secret of the webhook is not set: is it in your environment?")
    if not keys or not all(isinstance(key, str) and key for key in keys):
        raise ValueError("a delivery is verified with at least one secret, and an empty secret is refused")
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise ValueError("the body must be the bytes of the request, as they came: read it before any parser does")

    timestamp = _first(headers, _TIMESTAMP_HEADERS)
    signatures = [_first(headers, names) for names in _SIGNATURE_HEADERS]
    signatures = [value for value in signatures if value is not None and _SIGNATURE.fullmatch(value)]
    if timestamp is None or not _TIMESTAMP.fullmatch(timestamp) or not signatures:
        return "malformed_headers"

    age_seconds = now - int(timestamp)
    if age_seconds > tolerance_seconds:
        return "too_old"
    if age_seconds < -tolerance_seconds:
        return "too_new"

    # Every signature with every secret, in constant time: how long it takes says nothing about the secrets.
    matches = 0
    for key in keys:
        signed = b"v0:" + timestamp.encode("ascii") + b":" + bytes(body)
        expected = hmac.new(key.encode("utf-8"), signed, hashlib.sha256).hexdigest()
        for signature in signatures:
            matches += hmac.compare_digest(expected, signature)
    return None if matches else "wrong_signature"


def _first(headers: Headers, names: Iterable[str]) -> Optional[str]:
    """The one value of the first of these headers that is there, in whatever letter case; None where it is there twice."""
    pairs = list(headers.items() if hasattr(headers, "items") else headers)
    for name in names:
        values = [value for key, value in pairs if key.lower() == name]
        if values:
            return values[0] if len(values) == 1 else None
    return None
