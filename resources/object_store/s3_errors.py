"""What an S3 refusal means: one of our error classes and a sentence with the next step. Pure.

A sentence names bucket, key and endpoint. It never repeats what the store wrote about credentials
(some stores echo the access key), and never a request header.

Source: the error codes of the S3 API reference. HEAD answers carry no body, so their code is the
bare HTTP status.
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering_assets.resources.errors import (
    ObjectArchivedError,
    ObjectConflictError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectTooLargeError,
)

CREDENTIAL_CODES = frozenset(
    [
        "401",
        "403",
        "AccessDenied",
        "ExpiredToken",
        "Forbidden",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "Unauthorized",
    ]
)
_WRONG_KEY = {
    "InvalidAccessKeyId": ": the store does not know this access key",
    "SignatureDoesNotMatch": ": the secret key is not that of the access key",
}
_WRONG_RIGHTS = " (or the default credential chain) and what they may do there"
ABSENT_CODES = frozenset(["404", "NoSuchKey", "NoSuchUpload", "NoSuchVersion", "NotFound"])
WRONG_PLACE_CODES = frozenset(
    [
        "301",
        "307",
        "308",
        "IllegalLocationConstraintException",
        "MovedPermanently",
        "PermanentRedirect",
        "TemporaryRedirect",
    ]
)
CORRUPTED_CODES = frozenset(
    ["BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked, as far as a message may tell it. `endpoint` is empty for the default one."""

    action: str
    bucket: str
    endpoint: str
    key: str | None = None
    if_absent: bool = False
    if_match: bool = False

    @property
    def place(self) -> str:
        endpoint = self.endpoint or "the provider's own endpoint"
        return f"bucket {self.bucket!r} at {endpoint}"

    @property
    def what(self) -> str:
        return f"{self.action} of {self.key!r}" if self.key is not None else self.action


def refusal(request: Request, *, code: str, status: int, message: str) -> ObjectStoreError:
    """The error for an answer that is not a success."""
    if code == "NoSuchBucket":
        return bucket_missing(request)
    if code == "AuthorizationHeaderMalformed":
        return ObjectStoreError(
            f"{request.place}: {request.what} was refused: the bucket is in another region than the "
            f"request was signed for ({code}): check store.region"
        )
    if code in CREDENTIAL_CODES:
        return ObjectStoreError(
            f"{request.place}: {request.what} was refused ({code}): check store.access_key and "
            f"store.secret_key{_WRONG_KEY.get(code, _WRONG_RIGHTS)}"
        )
    if code == "RequestTimeTooSkewed":
        return ObjectStoreError(
            f"{request.place}: {request.what} was refused because this machine's clock differs "
            "from the store's: set the clock"
        )
    if code == "InvalidObjectState":
        return ObjectArchivedError(
            f"{request.place}: {request.what} was refused because the object is in an archive "
            "class. Restore it to a class that answers reads, and take the lifecycle rule away"
        )
    if code in WRONG_PLACE_CODES:
        return ObjectStoreError(
            f"{request.place}: the store points elsewhere ({code}) for {request.what}: check "
            "store.region and store.endpoint"
        )
    if code == "PreconditionFailed" or status == 412:
        return _lost_condition(request)
    if code in ABSENT_CODES:
        if request.if_match:  # If-Match on a key that is gone: the other writer deleted it
            return _lost_condition(request)
        absent = ObjectNotFoundError(f"{request.place}: {request.what}: not there ({code})")
        absent.of_key = code == "NoSuchKey"
        return absent
    if code in CORRUPTED_CODES:
        return ObjectStoreError(
            f"{request.place}: {request.what}: the bytes that arrived differ from their checksum "
            f"({code}): send them again"
        )
    if code == "ConditionalRequestConflict":
        return ObjectStoreError(
            f"{request.place}: {request.what} ran at the same time as another write of the key: "
            "look what is there, then try again"
        )
    said = " ".join(message.split())[:200]
    return ObjectStoreError(f"{request.place}: {request.what} failed: {code} {status} {said}")


def bucket_missing(request: Request) -> ObjectStoreError:
    return ObjectStoreError(
        f"{request.place} does not exist ({request.what}): create it, or set store.bucket and "
        "store.endpoint to those the brokers use"
    )


def too_large(request: Request, size: int, bytes_max: int) -> ObjectTooLargeError:
    return ObjectTooLargeError(
        f"{request.place}: {request.what}: it has {size} bytes, at most {bytes_max} were expected: "
        "nothing of ours is so large; it was not read"
    )


def unreachable(request: Request, *, sent: bool, reason: str) -> ObjectStoreError:
    """No answer. `sent` says that the request may have been carried out all the same."""
    if sent:
        return ObjectStoreError(
            f"{request.place}: no answer to {request.what} ({reason}); whether it was done is "
            "unknown: look before doing it again"
        )
    return ObjectStoreError(
        f"{request.place}: cannot reach the endpoint for {request.what} ({reason}): check "
        "store.endpoint, and that the server runs"
    )


def _lost_condition(request: Request) -> ObjectStoreError:
    if request.if_match:
        return ObjectConflictError(
            f"{request.place}: {request.what}: another writer changed it since it was read"
        )
    return ObjectExistsError(f"{request.place}: {request.what}: the key already exists")
