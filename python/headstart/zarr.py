"""A Zarr store (zarr-python 3) that reads through the node's cache (docs/store.md). Needs zarr.

store = headstart.store("s3://bucket/climate.zarr/", cache="8GiB")
array = zarr.open_array(headstart.zarr.Store(store), path="temperature", mode="r")
order = store.disclose(f"temperature/c/{time}/0/0" for time in range(1000))
for time in range(1000):
    train(array[time])
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstart.live.store.zarr import Store as Store

__all__ = ["Store"]


def __getattr__(name: str) -> object:
    """Load the store with zarr."""
    if name != "Store":
        raise AttributeError(f"module 'headstart.zarr' has no attribute '{name}'")
    try:
        from headstart.live.store.zarr import Store
    except ImportError as error:
        from headstart._core import HeadstartError

        raise HeadstartError("headstart.zarr needs zarr 3; allowed: pip install zarr") from error
    return Store
