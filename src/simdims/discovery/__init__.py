"""discover: from similarities to dimensions in one call, and the result, which saves and loads."""

from simdims.discovery.result import Discovery
from simdims.discovery.run import discover

__all__ = ["Discovery", "discover"]
