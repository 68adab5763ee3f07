"""headstart: prefetching and caching for storage."""

from headstart._core import HeadstartError, __version__

__all__ = ["HeadstartError", "__version__"]
