"""discover: from similarities to dimensions in one call. Results can be saved and loaded."""

from simdims.discovery.result import Discovery
from simdims.discovery.run import discover

__all__ = ["Discovery", "discover"]
