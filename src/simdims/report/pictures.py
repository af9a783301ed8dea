"""Thumbnails of the items, embedded in the page."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._dependencies import library
from simdims._parameters import ParameterError, ParameterTypeError
from simdims.plots._sources import check_images

if TYPE_CHECKING:
    from PIL.Image import Image

#: Longer side of a thumbnail, in pixels. Smaller images are not enlarged.
SIDE = 112
_JPEG_QUALITY = 80


def thumbnails(images: Any, n_items: int) -> list[str]:
    """Data URIs of arrays (height x width, or height x width x 1, 3 or 4), paths or PIL images, one per item."""
    check_images(images, n_items)
    library("PIL.Image", "A report with images", '"simdims[report]"')
    low, high = _range(images)
    return [_data_uri(_shrunk(_opened(image, low, high, place))) for place, image in enumerate(images)]


def _range(images: Sequence[Any]) -> tuple[float, float]:
    """The values of black and white in arrays that are not 8-bit: 0 and 1, or the range of all arrays."""
    low, high = 0.0, 1.0
    for place, image in enumerate(images):
        if isinstance(image, np.ndarray) and image.dtype != np.uint8:
            if image.dtype.kind not in "biuf":
                raise ParameterTypeError("images", "must hold numbers", f"dtype {image.dtype} in image {place}")
            if not image.size or not np.isfinite(image).all():
                raise ParameterError("images", "must hold finite numbers", f"others or none in image {place}")
            low, high = min(low, float(image.min())), max(high, float(image.max()))
    return low, high


def _opened(image: Any, low: float, high: float, place: int) -> Image:
    import PIL.Image

    if isinstance(image, np.ndarray):
        return PIL.Image.fromarray(_eight_bit(image, low, high, place))
    if isinstance(image, str | os.PathLike):
        return _read(Path(image))
    if not isinstance(image, PIL.Image.Image):
        got = f"{type(image).__name__} as image {place}"
        raise ParameterTypeError("images", "must be arrays, paths or PIL images", got)
    return image


def _read(path: Path) -> Image:
    import PIL.Image
    import PIL.ImageOps

    if not path.is_file():
        raise FileNotFoundError(f"No such file: {str(path)!r}.")
    try:
        with PIL.Image.open(path) as file:
            file.draft("RGB", (2 * SIDE, 2 * SIDE))
            return PIL.ImageOps.exif_transpose(file).copy()
    except (OSError, ValueError, SyntaxError):
        raise ParameterError("images", "must be image files", f"{str(path)!r}, which cannot be read") from None


def _eight_bit(image: NDArray, low: float, high: float, place: int) -> NDArray[np.uint8]:
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))) or 0 in image.shape:
        rule = "must be height x width, or height x width x 3 or 4"
        raise ParameterError("images", rule, f"shape {image.shape} for image {place}")
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    return np.rint((image.astype(np.float64) - low) * (255 / (high - low))).astype(np.uint8)


def _shrunk(image: Image) -> Image:
    if image.mode in ("P", "PA", "LA"):
        image = image.convert("RGBA")
    elif image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert("RGB")
    if max(image.size) > SIDE:
        image = image.copy()
        image.thumbnail((SIDE, SIDE))
    return image


def _data_uri(image: Image) -> str:
    """The smaller of PNG and JPEG; transparent and tiny images are always PNG."""
    formats = ["png"] if image.mode == "RGBA" or max(image.size) <= 32 else ["png", "jpeg"]
    written = {}
    for name in formats:
        buffer = io.BytesIO()
        image.save(buffer, name, **({"quality": _JPEG_QUALITY} if name == "jpeg" else {}))
        written[name] = buffer.getvalue()
    name = min(written, key=lambda name: len(written[name]))
    return f"data:image/{name};base64,{base64.b64encode(written[name]).decode('ascii')}"
