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
import re
import time
from typing import Iterable, List, Mapping, Optional, Tuple, Union

TOLERANCE_SECONDS = 300
_SIGNATURE_HEADERS = ("x-svc-signature", "x-svc-signature-next")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")

Headers = Union[Mapping[str, str], Iterable[Tuple[str, str]]]


def verify(headers: Headers, body: bytes, secrets: Iterable[str], **options: float) -> bool:
    """True where the request was signed with one of the secrets, within the tolerance.

    body is the raw body, exactly as it came. secrets has the webhook's secret; while it is rotated, the old and the
    new one. Options: tolerance_seconds, and now (Unix seconds). Raises ValueError where there is no secret or an
    empty one, which anybody could sign with.
    """
    return why_refused(headers, body, secrets, **options) is None


def why_refused(
    headers: Headers,
    body: bytes,
    secrets: Iterable[str],
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: Optional[float] = None,
) -> Optional[str]:
    """Why verify says False, for your log: never tell it to the caller. None where it says True."""
    keys: List[str] = [secrets] if isinstance(secrets, str) else list(secrets)
    if not keys or not all(isinstance(key, str) and key for key in keys):
        raise ValueError("a delivery is verified with at least one secret, and none may be empty")

    timestamp = _header(headers, "x-svc-timestamp")
    signatures = [_header(headers, name) for name in _SIGNATURE_HEADERS]
    signatures = [value for value in signatures if value is not None and _SIGNATURE.fullmatch(value)]
    if timestamp is None or not _TIMESTAMP.fullmatch(timestamp) or not signatures:
        return "malformed_headers"

    age_seconds = (time.time() if now is None else now) - int(timestamp)
    if age_seconds > tolerance_seconds:
        return "too_old"
    if age_seconds < -tolerance_seconds:
        return "too_new"

    # Every signature with every secret, in constant time: how long it takes says nothing about the secrets.
    matches = 0
    for key in keys:
        signed = b"v0:" + timestamp.encode("ascii") + b":" + body
        expected = hmac.new(key.encode("utf-8"), signed, hashlib.sha256).hexdigest()
        for signature in signatures:
            matches += hmac.compare_digest(expected, signature)
    return None if matches else "wrong_signature"


def _header(headers: Headers, name: str) -> Optional[str]:
    """The one value of a header, in whatever letter case; None where there is none, or more than one."""
    pairs = headers.items() if hasattr(headers, "items") else headers
    values = [value for key, value in pairs if key.lower() == name]
    return values[0] if len(values) == 1 else None
