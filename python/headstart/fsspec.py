"""The protocol `headstart` of fsspec: other file systems through the node's cache (docs/store.md). Needs fsspec.

    pandas.read_parquet("headstart::s3://bucket/table/part-0.parquet", storage_options={"cache": "8GiB"})

The options are those of `headstart.store`. All of a bucket goes through one daemon.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstart.live.store.fsspec import HeadstartFileSystem as HeadstartFileSystem

__all__ = ["HeadstartFileSystem"]


def __getattr__(name: str) -> object:
    """Load the file system with fsspec."""
    if name != "HeadstartFileSystem":
        raise AttributeError(f"module 'headstart.fsspec' has no attribute '{name}'")
    from headstart.live.store.fsspec import HeadstartFileSystem

    return HeadstartFileSystem
