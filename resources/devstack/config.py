"""Configuration text of each server, made from the shipped files. Pure.

Owns: a key we set appears exactly once. BookKeeper's reader turns a key given twice into a list,
so the shipped line is removed before ours is added. Values that would need escaping are refused
rather than escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.errors import SettingsError

HOST = "127.0.0.1"
_KEY = re.compile(r"[A-Za-z0-9._-]+")
_KEY_OF_LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)")

_BOOKIE_FIXED = {
    "advertisedAddress": HOST,
    "listeningInterface": "lo",
    "allowLoopback": "true",
    "httpServerEnabled": "true",
    "httpServerHost": HOST,
    # One disk, throw-away data: fsync would measure the disk, and pre-allocation would fill it.
    "journalSyncData": "false",
    "journalMaxSizeMB": "64",
    "journalPreAllocSizeMB": "4",
    "flushInterval": "5000",
    "gcWaitTime": "10000",
    "minorCompactionInterval": "20",
    "majorCompactionInterval": "60",
    "isForceGCAllowWhenNoSpace": "true",
    "logSizeLimit": "8388608",
    "entryLogFilePreallocationEnabled": "false",
    "dbStorage_writeCacheMaxSizeMb": "32",
    "dbStorage_readAheadCacheMaxSizeMb": "16",
    "dbStorage_rocksDB_blockCacheSize": "8388608",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "minUsableSizeForIndexFileCreation": "1048576",
    "minUsableSizeForEntryLogCreation": "1048576",
    "autoRecoveryDaemonEnabled": "false",
    # The shipped one keeps a metadata store of its own, which looks for a batch every 5 ms.
    "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
}

_BROKER_FIXED = {
    "bindAddress": HOST,
    "advertisedAddress": HOST,
    "numIOThreads": "2",
    "numAcceptorThreads": "1",
    "numOrderedExecutorThreads": "2",
    "numHttpServerThreads": "8",  # Jetty refuses to start with fewer than it needs itself
    "numExecutorThreadPoolSize": "2",
    "numCacheExecutorThreadPoolSize": "2",
    "topicOrderedExecutorThreadNum": "2",
    "bookkeeperClientNumWorkerThreads": "2",
    "bookkeeperClientNumIoThreads": "2",
    "managedLedgerNumSchedulerThreads": "2",
    "managedLedgerCacheSizeMB": "64",
    "managedLedgerCacheEvictionIntervalMs": "1000",  # by default every 10 ms, idle or not
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "functionsWorkerEnabled": "false",
    "loadBalancerEnabled": "false",
    "metadataStoreBatchingEnabled": "false",  # looks for a batch every 5 ms, idle or not
    "offloadersDirectory": "./offloaders",  # what a namespace's policy object resets it to
    "managedLedgerOffloadDriver": "aws-s3",
}


def rewrite_properties(shipped: str, changes: Mapping[str, str | None]) -> str:
    """Return `shipped` with each key of `changes` set to its value, or removed where it is None.

    Raises SettingsError for a key or value that a properties file cannot hold as it is.
    """
    for key, value in changes.items():
        if not _KEY.fullmatch(key):
            raise SettingsError(f"{key!r} is not a configuration key")
        if value is not None and ("\\" in value or not value.isprintable()):
            raise SettingsError(f"the value of {key} holds a backslash or a control character")
    kept: list[str] = []
    dropping = False
    continued = False
    for line in shipped.splitlines():
        if not continued:
            match = _KEY_OF_LINE.match(line)
            dropping = match is not None and match[1] in changes
        if not dropping:
            kept.append(line)
        comment = not continued and line.lstrip().startswith(("#", "!"))
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1 and not comment
    kept += [f"{key}={value}" for key, value in changes.items() if value is not None]
    return "\n".join(kept) + "\n"


def zookeeper_conf(*, port: int, data_dir: str) -> str:
    """Return a whole zoo.cfg; the shipped one opens two more ports on every address."""
    return rewrite_properties(
        "",
        {
            "tickTime": "2000",
            "dataDir": data_dir,
            "clientPort": str(port),
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
            "forceSync": "no",  # throw-away data
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": "0",
        },
    )


def bookie_changes(
    options: StackOptions,
    name: str = "bookie1",
    *,
    zookeeper: str,
    port: int,
    http_port: int,
    data_dir: str,
) -> dict[str, str | None]:
    """Return what a bookie changes in the shipped bookkeeper.conf; options.bookie_conf has the last
    word.
    """
    return {
        **_BOOKIE_FIXED,
        "zkServers": zookeeper,
        "metadataServiceUri": None,  # made from zkServers
        "bookiePort": str(port),
        "httpServerPort": str(http_port),
        "journalDirectories": f"{data_dir}/journal",
        "journalDirectory": None,
        "ledgerDirectories": f"{data_dir}/ledgers",
        **{
            key: None if value is None else value.replace("{server}", name)
            for key, value in options.bookie_conf.items()
        },
    }


def broker_changes(
    options: StackOptions,
    name: str = "broker",
    *,
    zookeeper: str,
    port: int,
    web_port: int,
    s3_url: str,
    nar_dir: str,
) -> dict[str, str | None]:
    """Return what a broker changes in the shipped broker.conf; the options have the last word."""
    copies = str(min(2, options.bookies))
    lag = options.broker_deletion_lag_ms
    return {
        **_BROKER_FIXED,
        "metadataStoreUrl": f"zk:{zookeeper}",
        "configurationMetadataStoreUrl": f"zk:{zookeeper}",
        "clusterName": options.cluster,
        "brokerServicePort": str(port),
        "webServicePort": str(web_port),
        "managedLedgerDefaultEnsembleSize": copies,
        "managedLedgerDefaultWriteQuorum": copies,
        "managedLedgerDefaultAckQuorum": copies,
        "managedLedgerMaxEntriesPerLedger": str(options.ledger_entries_max),
        "managedLedgerMaxSizePerLedgerMbytes": str(options.ledger_megabytes_max),
        # Without the line the lag is unset, and the broker never deletes the bookie copy.
        "managedLedgerOffloadDeletionLagMs": None if lag is None else str(lag),
        "managedLedgerOffloadAutoTriggerSizeThresholdBytes": str(options.auto_offload_bytes),
        "s3ManagedLedgerOffloadRegion": options.region,
        "s3ManagedLedgerOffloadBucket": options.bucket,
        "s3ManagedLedgerOffloadServiceEndpoint": s3_url,
        "s3ManagedLedgerOffloadMaxBlockSizeInBytes": str(options.block_bytes),
        "narExtractionDirectory": nar_dir,
        **options.broker_conf,
        **options.one_broker_conf.get(name, {}),
    }


def s3_identities(*, access_key: str, secret_key: str) -> str:
    """Return the S3 server's list of identities: ours, and so nobody anonymous."""
    identity = {
        "name": "tierkeeper",
        "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    return json.dumps({"identities": [identity]})


def s3_security(key: str) -> str:
    """Return security.toml; without it the filer beside the S3 port serves anybody."""
    sections = ("jwt.signing", "jwt.filer_signing", "jwt.filer_signing.read")
    return "".join(
        f'[{section}]\nkey = "{key}"\nexpires_after_seconds = 60\n' for section in sections
    )
