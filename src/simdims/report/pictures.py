"""Pictures of the items as small images that the page holds."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims._dependencies import library

if TYPE_CHECKING:
    from PIL.Image import Image

#: The longer side of a thumbnail, in pixels. Smaller pictures stay as they are.
SIDE = 112
_JPEG_QUALITY = 80


def thumbnails(images: Any, n_items: int) -> list[str]:
    """Data URIs, one an item.

    Parameters
    ----------
    images : sequence
        Arrays (height x width, or height x width x 1, 3 or 4), paths or PIL images.
    n_items : int
    """
    is_sequence = hasattr(images, "__len__") and getattr(images, "ndim", 1) > 0
    if isinstance(images, str | bytes | os.PathLike) or not is_sequence:
        raise TypeError(f"images must be a sequence of arrays, paths or PIL images, got {type(images).__name__}.")
    if len(images) != n_items:
        raise ValueError(f"images must have one picture for each of the {n_items} items, got {len(images)}.")
    library("PIL.Image", "A report with images", '"simdims[report]"')
    low, high = _range(images)
    return [_data_uri(_shrunk(picture)) for picture in _opened(images, low, high)]


def _range(images: Sequence[Any]) -> tuple[float, float]:
    """What is black and what is white in arrays that are not 8-bit: 0 and 1, or the smallest and largest of all."""
    low, high = 0.0, 1.0
    for place, image in enumerate(images):
        if isinstance(image, np.ndarray) and image.dtype != np.uint8:
            if image.dtype.kind not in "biuf":
                raise TypeError(f"images must hold numbers, got dtype {image.dtype} in image {place}.")
            if not image.size or not np.isfinite(image).all():
                raise ValueError(f"images must hold finite numbers, got others or none in image {place}.")
            low, high = min(low, float(image.min())), max(high, float(image.max()))
    return low, high


def _opened(images: Sequence[Any], low: float, high: float) -> Iterator[Image]:
    import PIL.Image

    for place, image in enumerate(images):
        if isinstance(image, np.ndarray):
            yield PIL.Image.fromarray(_eight_bit(image, low, high, place))
        elif isinstance(image, PIL.Image.Image):
            yield image
        elif isinstance(image, str | os.PathLike):
            yield _read(Path(image))
        else:
            raise TypeError(f"images must be arrays, paths or PIL images, got {type(image).__name__} as image {place}.")


def _read(path: Path) -> Image:
    import PIL.Image
    import PIL.ImageOps

    if not path.is_file():
        raise FileNotFoundError(f"images must be files that are there, got {str(path)!r}.")
    try:
        with PIL.Image.open(path) as file:
            file.draft("RGB", (2 * SIDE, 2 * SIDE))
            return PIL.ImageOps.exif_transpose(file).copy()
    except (OSError, ValueError, SyntaxError):
        raise ValueError(f"images must be pictures, got {str(path)!r}, which cannot be read as one.") from None


def _eight_bit(image: NDArray, low: float, high: float, place: int) -> NDArray[np.uint8]:
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))) or 0 in image.shape:
        raise ValueError(
            f"images must be height x width, or height x width x 3 or 4, got shape {image.shape} for image {place}."
        )
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
    """The smaller of PNG and JPEG; what is transparent stays so, as PNG."""
    kinds = ["PNG"] if image.mode == "RGBA" or max(image.size) <= 32 else ["PNG", "JPEG"]
    written = []
    for kind in kinds:
        buffer = io.BytesIO()
        image.save(buffer, kind, **({"quality": _JPEG_QUALITY} if kind == "JPEG" else {}))
        written.append((buffer.getvalue(), kind.lower()))
    content, kind = min(written, key=lambda one: len(one[0]))
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
