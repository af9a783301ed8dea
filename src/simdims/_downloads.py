"""Third-party data files: their sources, and how each is downloaded once and verified."""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from simdims._dependencies import library

if TYPE_CHECKING:
    from requests import RequestException

GITHUB = "https://raw.githubusercontent.com"
TIMEOUT = 30  # seconds without an answer

_log = logging.getLogger("simdims")


@dataclass(frozen=True)
class RemoteFile:
    """A file on GitHub at a fixed commit, and its checksum."""

    repository: str  # owner/name
    commit: str
    path: str
    sha256: str

    def url(self, base: str = GITHUB) -> str:
        """The file's address on GitHub, or on a mirror."""
        return f"{base.rstrip('/')}/{self.repository}/{self.commit}/{quote(self.path)}"


# Repositories at a commit.
_NORMS = ("ViCCo-Group/semantic_features_gpt_3", "3b132af668bc61706b944dcfd6b01672d3a49c34")
_RSA = ("rsagroup/rsatoolbox", "f1f83cadb7243492a1aae7460466e0f0140b20ac")
_PERCEPT2VEC = ("jcpeterson/percept2vec", "2f82c622a8c4677101364e0b22883fc32e782faf")
_ENCODING = ("ViCCo-Group/dimension_encoding", "b1843e7eb92858c9c4a9ef88b4a5faea24752b49")
_PERTURBATIONS = ("marrenj/cvpr_perturbations", "9820d612f66d3c2386e22159e1a6f841974efeb7")

#: Name of the local copy (in the cache, and in the folder of SIMDIMS_DATA) -> the original.
FILES = {
    "mur92/92_behavRDMs.mat": RemoteFile(
        *_RSA, "demos/92imageData/92_behavRDMs.mat", "7a8e118c144c3840adeeeef6ea0706a0be2b3e80df719af15fbb56fc62562f5f"
    ),
    "peterson_animals/turkResults_CogSci2016.mat": RemoteFile(
        *_PERCEPT2VEC, "turkResults_CogSci2016.mat", "57317121aaa43f553b6551d523eaf0740269e695c0dc438f36735f2ccb85977e"
    ),
    "things/spose_embedding_66d_sorted.txt": RemoteFile(
        *_NORMS,
        "data/things/spose_embedding_66d_sorted.txt",
        "6a485922fe22c10b2eb920140198488451d44ac6de0c6be5e8ee8eec8a2007cc",
    ),
    "things/unique_id.txt": RemoteFile(
        *_NORMS, "data/things/unique_id.txt", "e2e59d02197e89776034938e7a73940a0823cacac4b6084b56b1d8959816ff76"
    ),
    "things/labels_short.txt": RemoteFile(
        *_ENCODING, "data/66d/labels_short.txt", "8bca7828c6d84ce2e19061a1314dc71060891153092869e0a3e2a0e0d09bafbd"
    ),
    "things/RDM48_triplet.mat": RemoteFile(
        *_PERTURBATIONS, "data/RDM48_triplet.mat", "c08e207821fdba8d85e2d1018d89ca9a79afd106cc7db20506a69678528f094b"
    ),
    "words/SimLex-999.txt": RemoteFile(
        *_NORMS, "data/simlex999/SimLex-999.txt", "065b7f0406494d7daece5b51b38d67f34801fb3e130c319e533fea7661875b73"
    ),
    "words/wordsim353_combined.csv": RemoteFile(
        *_NORMS, "data/wordsim353/combined.csv", "b72497c835c075919512773e9d1cbc95a067ba986b2c1290bee7bf4c69c90281"
    ),
}


def find(name: str) -> Path:
    """The path of a verified file: the local copy, or the cached download."""
    path = local_path(name)
    if path is None:
        return _download(name)
    found, original = hashlib.sha256(path.read_bytes()).hexdigest(), FILES[name]
    if found != original.sha256:
        remedy = f"replace it with {original.url()}, or remove it to have that downloaded"
        raise ValueError(f"{path} must be the original file, with SHA-256 {original.sha256}, got {found}: {remedy}.")
    return path


def local_path(name: str) -> Path | None:
    """The file of this name in the folder of SIMDIMS_DATA, if there is one."""
    setting = os.environ.get("SIMDIMS_DATA")
    if not setting:
        return None
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"SIMDIMS_DATA must name a folder of data files, got {setting!r}: there is none.")
    path = folder / name
    return path if path.is_file() else None


def _download(name: str) -> Path:
    """The path of a file in the cache, downloaded if it is missing or damaged."""
    pooch = library("pooch", f"Downloading {name}", '"simdims[data]"')
    import requests  # required by pooch

    url = FILES[name].url(os.environ.get("SIMDIMS_DATA_URL") or GITHUB)
    checksum = FILES[name].sha256
    path = pooch.os_cache("simdims") / name
    if not path.exists():
        _log.info("Downloading %s to %s.", url, path)
    logger, downloader = pooch.get_logger(), pooch.HTTPDownloader(timeout=TIMEOUT)
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        pooch.retrieve(url, f"sha256:{checksum}", fname=path.name, path=path.parent, downloader=downloader)
    except requests.RequestException as error:
        failed = f"{name} could not be downloaded from {url} ({_reason(error)})"
        raise ConnectionError(f"{failed}: try again with a network connection, or {_by_hand(name)}.") from error
    except ValueError as error:
        got = f"another file from {url}, which was not kept"
        raise ValueError(f"{name} must have SHA-256 {checksum}, got {got}: try again, or {_by_hand(name)}.") from error
    except OSError as error:
        raise OSError(f"{name} could not be stored in {path.parent} ({error}): {_by_hand(name)}.") from error
    finally:
        logger.setLevel(level)
    return path


def _by_hand(name: str) -> str:
    return f"put a copy of the file into the folder that SIMDIMS_DATA names, as {name}"


def _reason(error: RequestException) -> str:
    """Why a download failed, without the object addresses in the messages of requests."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT} s"
    if isinstance(error, requests.ConnectionError):
        return "no connection to the server"
    return str(error)
