"""Messages that left the bookies as a Parquet file, and SQL over it. One block in memory at a time.

Owns: the messages are those of `messages` (lineage/messages/as_arrow.py), written as they come. A
file that is there is never overwritten, and half a file never stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.sql import sql_text

COLUMNS: Final = (
    "topic",
    "partition",
    "ledger_id",
    "entry_id",
    "batch_index",
    "publish_time",
    "key",
    "payload",
)
"""Of messages, that the questions here need; docs/cold-messages.md has all."""
_NAME: Final = (
    "case when partition is null then topic else concat(topic, '-partition-', partition) end"
)
BESIDE: Final = f"""with here as (
    select {_NAME} as topic, ledger_id, entry_id, batch_index, sha256(payload) as payload_sha256
    from cold
)
select topic,
    count(*) filter (h.payload_sha256 = c.payload_sha256) as equal,
    count(*) filter (h.payload_sha256 <> c.payload_sha256) as different,
    count(*) filter (c.payload_sha256 is null) as cold_only,
    count(*) filter (h.payload_sha256 is null) as consumer_only
from here h full join consumer c using (topic, ledger_id, entry_id, batch_index)
group by topic order by topic"""  # noqa: S608 - our words
"""SQL over `cold`, as it was exported, and `consumer`, as consumer_now.py has it: by message id."""


def topics_in(path: Path) -> list[str]:
    """Topics of an exported file, as clients name them: of a partitioned one its partitions."""
    found = ask_files(f"select distinct {_NAME} as topic from cold order by topic", {"cold": path})  # noqa: S608
    return [str(one) for one in found["topic"]]


def export_messages(reader: pa.RecordBatchReader, path: Path) -> int:
    """Write every batch to a new Parquet file; how many messages there are.

    Raises:
        SettingsError: the file is there already, or its folder is not.
        TierkeeperError: as the reader has it; then nothing of the file stays.
    """
    if path.exists():
        raise SettingsError(f"{path}: there is such a file already; name another one")
    if not path.parent.is_dir():
        raise SettingsError(f"{path}: there is no folder {path.parent}")
    begun = path.with_name(f"{path.name}.part")
    count = 0
    try:
        with parquet.ParquetWriter(begun, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                count += batch.num_rows
        begun.rename(path)
    finally:
        begun.unlink(missing_ok=True)
    return count


def ask_files(question: str, files: Mapping[str, Path], **frames: Any) -> pd.DataFrame:
    """Rows of one question over Parquet files and frames, by the names that it has for them.

    Nothing outside of these is read. duckdb.Error for what is no question.
    """
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as asked:
        asked.execute("set timezone = 'UTC'")
        for name, path in files.items():
            asked.execute(
                f'create view "{name}" as select * from read_parquet({sql_text(str(path))})'  # noqa: S608
            )
        for name, frame in frames.items():
            asked.register(name, frame)
        found: pd.DataFrame = asked.sql(question).df()
    return found
