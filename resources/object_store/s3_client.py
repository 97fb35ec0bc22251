"""One boto3 client per process, and the translation of all it raises into our errors.

Retries of a request live in botocore (`attempts_max` tries in all). Only a download whose body
breaks off is tried again here, as often, for botocore's retries end with the headers.

The client is made at the first call, or one is taken that a closed store left. It is of its process
alone: a forked worker never shares its parent's sockets. Error texts never hold what botocore
quotes (bodies, headers), hence `from None`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore import exceptions as boto_errors
from botocore.config import Config
from botocore.handlers import add_expect_header
from botocore.parsers import ResponseParserError
from botocore.session import get_session
from botocore.utils import determine_content_length, parse_timestamp
from urllib3 import exceptions as urllib3_errors

from tiering_assets.resources.errors import ObjectStoreError, SettingsError
from tiering_assets.resources.object_store import s3_errors
from tiering_assets.resources.object_store.bodies import BrokenBodyError, SentBody, ViewBody
from tiering_assets.resources.object_store.kept_clients import MeteredClient, keep, key_of, take
from tiering_assets.resources.object_store.meter import StoreMeter

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from tiering_assets.resources.settings import StoreSettings

T = TypeVar("T")

_ASKED_FROM_BYTES = 256 * 1024

_NOT_SENT = (
    boto_errors.EndpointConnectionError,
    boto_errors.ConnectTimeoutError,
    boto_errors.ProxyConnectionError,
    boto_errors.SSLError,
)
_NO_CREDENTIALS = (
    boto_errors.NoCredentialsError,
    boto_errors.PartialCredentialsError,
    boto_errors.CredentialRetrievalError,
)


_MAKING = threading.Lock()


@lru_cache(maxsize=8)
def _session(
    access_key: str, secret_key: str, region: str, _named: tuple[tuple[str, str], ...]
) -> boto3.session.Session:
    """What clients of the same credentials share: a tenth of a second for reading S3's model.

    Credentials may be those that the environment names, which is part of the question.
    """
    core = get_session()
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=time_in)
    return boto3.session.Session(
        aws_access_key_id=access_key or None,
        aws_secret_access_key=secret_key or None,
        region_name=region or None,
        botocore_session=core,
    )


def time_in(value: Any) -> datetime:
    """A time as S3 writes it in listings or headers; another one by the library's own parser.

    That one takes any format: it is 40 times as slow, for each key that is listed.
    """
    try:
        found = datetime.fromisoformat(value) if value[-1] == "Z" else parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        found = None
    return parse_timestamp(value) if found is None or found.tzinfo is None else found


def credential_source(settings: StoreSettings) -> str:
    """Where a client of these settings finds credentials, in boto3's words; empty for nowhere.

    Only `env`, `shared-credentials-file`, a role's name and the like; never what was found there.
    """
    if settings.access_key:
        return "tierkeeper's settings"
    try:
        found = boto3.session.Session().get_credentials()
    except boto_errors.BotoCoreError:  # half a pair, or a profile that is not there
        return ""
    return "" if found is None else str(found.method)


def credentials_of(settings: StoreSettings) -> tuple[str, str, str | None]:
    """Access key, secret key and session token (None without one), for another library's client.

    SettingsError where there are none.
    """
    if settings.access_key:
        return settings.access_key, settings.secret_key, None
    try:
        found = boto3.session.Session().get_credentials()
    except boto_errors.BotoCoreError:
        found = None
    now = None if found is None else found.get_frozen_credentials()
    if now is None or not now.access_key or not now.secret_key:
        raise SettingsError(
            "no credentials of the store: set store.access_key and store.secret_key, or what "
            "boto3 looks for"
        )
    return now.access_key, now.secret_key, now.token


def ca_bundle() -> str | None:
    """The file of certificates that a client trusts, where boto3 is told of one."""
    found: str | None = get_session().get_config_variable("ca_bundle")
    return found


class S3Connection:
    """The client of one bucket's settings, and what its errors mean."""

    def __init__(self, settings: StoreSettings, meter: StoreMeter | None = None) -> None:
        self._settings = settings
        self._meter = meter
        self._lock = threading.Lock()
        self._client_of: tuple[int, S3Client] | None = None
        self._metered: MeteredClient | None = None

    def close(self) -> None:
        """Leave a metered client to the next store; call it when no request is under way."""
        with self._lock:
            held, self._metered, self._client_of = self._metered, None, None
        if held is not None:
            keep(held)

    def request(
        self,
        action: str,
        key: str | None = None,
        *,
        if_absent: bool = False,
        if_match: bool = False,
    ) -> s3_errors.Request:
        return s3_errors.Request(
            action=action,
            bucket=self._settings.bucket,
            endpoint=self._settings.endpoint,
            key=key,
            if_absent=if_absent,
            if_match=if_match,
        )

    @contextmanager
    def translated(
        self,
        action: str,
        key: str | None = None,
        *,
        if_absent: bool = False,
        if_match: bool = False,
    ) -> Iterator[S3Client]:
        """Hand out the client; whatever botocore raises in the block becomes one of our errors."""
        request = self.request(action, key, if_absent=if_absent, if_match=if_match)
        try:
            yield self._client()
        except boto_errors.ClientError as error:
            said = error.response.get("Error", {})
            raise s3_errors.refusal(
                request,
                code=str(said.get("Code", "")),
                status=error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0),
                message=self._scrubbed(str(said.get("Message", ""))),
            ) from None
        except _NO_CREDENTIALS as error:
            raise s3_errors.refusal(
                request, code="Unauthorized", status=401, message=type(error).__name__
            ) from None
        except boto_errors.ParamValidationError:
            raise ObjectStoreError(
                f"{request.place}: {request.what}: bucket name, key or metadata is not valid in S3"
            ) from None
        except ResponseParserError:
            raise ObjectStoreError(
                f"{request.place}: {request.what}: the answer is not S3's: check store.endpoint"
            ) from None
        except boto_errors.BotoCoreError as error:
            sent = not isinstance(error, _NOT_SENT)
            raise s3_errors.unreachable(request, sent=sent, reason=type(error).__name__) from None

    def downloaded(self, key: str, download: Callable[[S3Client], T]) -> T:
        """What `download` gives; a body that breaks off is asked for again.

        Botocore reads the body of a refused download outside of its own retries and translation,
        so that one that breaks off arrives here as urllib3's error.
        """
        broken = ""
        for _ in range(max(1, self._settings.attempts_max)):
            try:
                with self.translated("GET", key) as client:
                    return download(client)
            except BrokenBodyError as error:
                broken = str(error)
            except urllib3_errors.HTTPError as error:
                broken = type(error).__name__
        request = self.request("GET", key)
        raise ObjectStoreError(
            f"{request.place}: {request.what}: the body broke off "
            f"{self._settings.attempts_max} times ({broken})"
        )

    def pages(self, action: str, key: str, pages: Any) -> Iterator[Any]:
        """Each page under the translation, without holding it open while the caller works."""
        iterator = iter(pages)
        while True:
            with self.translated(action, key):
                page = next(iterator, None)
            if page is None:
                return
            yield page

    def _client(self) -> S3Client:
        with self._lock:
            if self._client_of is None or self._client_of[0] != os.getpid():
                self._client_of = (os.getpid(), self._taken_or_new())
            return self._client_of[1]

    def _taken_or_new(self) -> S3Client:
        named = tuple(sorted(e for e in os.environ.items() if e[0].startswith("AWS_")))
        if self._meter is None:
            return self._new_client(named)
        key = key_of((self._settings, named))
        held = take(key)
        if held is None:
            held = MeteredClient(key, self._new_client(named))
            _ask_before_sending(held)
        held.meter = self._meter
        self._metered = held
        client: S3Client = held.client
        return client

    def _new_client(self, named: tuple[tuple[str, str], ...]) -> S3Client:
        """A client with the credentials of the settings, or those that the environment names."""
        settings = self._settings
        config = Config(
            signature_version="s3v4",
            s3={
                "addressing_style": "path" if settings.endpoint else "auto",
                "payload_signing_enabled": False,
            },
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            retries={"mode": "standard", "total_max_attempts": settings.attempts_max},
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            max_pool_connections=settings.connections_max,
            tcp_keepalive=True,
            user_agent="tierkeeper",  # boto3's is put together anew for each request
            # The endpoint comes from our settings alone: a stray variable must not redirect us.
            ignore_configured_endpoint_urls=True,  # type: ignore[call-arg]
        )
        try:
            with _MAKING:  # a session makes one client at a time
                keys = settings.access_key, settings.secret_key, settings.region
                session = _session(*keys, named)
                client = session.client("s3", endpoint_url=settings.endpoint or None, config=config)
        except ValueError:
            raise SettingsError(
                f"store.endpoint {settings.endpoint!r} or store.region {settings.region!r} "
                "is not usable: expected a URL like http://host:port and a region name"
            ) from None
        prepare_sending(client)
        return client

    def _scrubbed(self, text: str) -> str:
        for secret in (self._settings.secret_key, self._settings.access_key):
            if secret:
                text = text.replace(secret, "***")
        return text


def prepare_sending(client: S3Client) -> None:
    """Have a client send bodies without asking first, where no condition may refuse a long one.

    The client library asks for each, which is a round trip more for every part. Nor does it say
    what a part is. SeaweedFS then looks for itself, and compresses blocks whose headers are zeros.
    """
    events = client.meta.events
    events.unregister("before-call.s3", add_expect_header)
    events.register("before-call.s3", _ask_whether_to_send)
    events.register("before-call.s3.UploadPart", _say_what_a_part_is)


def _ask_whether_to_send(params: dict[str, Any], **_of: Any) -> None:
    """Let a store refuse a long body before it is sent, where its answer depends on a condition."""
    conditions = {"If-None-Match", "If-Match"} & params["headers"].keys()
    if conditions and (determine_content_length(params.get("body")) or 0) > _ASKED_FROM_BYTES:
        params["headers"]["Expect"] = "100-continue"


def _say_what_a_part_is(params: dict[str, Any], **_of: Any) -> None:
    params["headers"]["Content-Type"] = "application/octet-stream"


def _ask_before_sending(metered: MeteredClient) -> None:
    """Let every try of every request wait for the meter, before it is signed and as it is sent."""

    def created(**_of: Any) -> None:
        if metered.meter is not None:
            metered.meter.request()

    def sending(request: Any, **_of: Any) -> None:
        meter, body = metered.meter, request.body
        if not body:  # the meter is asked of nothing: it may be what reads
            return
        bound = meter if meter is not None and meter.bounds_uploads() else None
        if isinstance(body, BytesIO):  # what botocore makes of bytes that are an object's body
            request.body = SentBody(body.getbuffer(), bound)
        elif isinstance(body, ViewBody):
            request.body = SentBody(body.view, bound)
        elif bound is not None:
            request.body = SentBody(body, bound)

    # A signature is good for minutes only: it is made after the wait, as handlers run in order.
    events = metered.client.meta.events
    events.register_first("request-created.s3", created)
    events.register("before-send.s3", sending)
