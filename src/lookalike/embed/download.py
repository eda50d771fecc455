"""`lookalike models pull`: the one place that fetches a model, and where each model's files lie."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.embed import hf_source, open_clip_source, timm_source
from lookalike.embed.asked import RANDOM, Asked
from lookalike.embed.extras import library
from lookalike.embed.hub import MissingWeightsError, Repo, is_offline, is_path, torch_cache
from lookalike.embed.timm_source import HUB, LOCAL
from lookalike.errors import InputError, LookalikeError, UnknownNameError

SOURCES = ("timm", "open_clip", "hf")
_REACH_S = 4.0
"""A hub that does not answer in this time is out of reach; said at once instead of after many retries."""
_HF_FILES = ("*.json", "*.txt", "*.model", "README.md", "LICENSE*")
_TIMM_FILES = ("config.json", "README.md", "LICENSE*")


class UnreachableError(LookalikeError, ConnectionError):
    """The hub does not answer, or answers that it has no such model."""


def where(name: str) -> Path | None:
    """Return the file or folder of a model's weights; None where it needs none (random weights).

    Raises:
        MissingWeightsError: they are not on this machine.
        InputError: a source whose models are not files of a hub.
    """
    asked = _asked(name)
    if asked.source == "timm":
        return timm_source.weights_path(asked)
    if asked.source == "hf":
        return hf_source.model_folder(asked)
    return open_clip_source.weights_path(asked)[1]


def pull(name: str, *, offline: bool = False) -> Path:
    """Fetch a model into the hub's cache, unless it is there, and return where it lies.

    Raises:
        InputError: a local path, random weights or `offline`: there is nothing to fetch.
        UnreachableError: the hub does not answer, or knows no such model.
    """
    asked = _asked(name)
    if asked.weights == RANDOM or asked.model.startswith(LOCAL) or is_path(asked.model) or is_path(asked.weights):
        raise InputError(f"{asked.name} names files of this machine; there is nothing to fetch.")
    try:
        if (found := where(name)) is not None:
            return found
    except MissingWeightsError as missing:
        if offline or is_offline():
            raise InputError(
                f"{missing.message} Fetching is not allowed offline.", hint="Leave --offline and HF_HUB_OFFLINE out."
            ) from missing
    _reach()
    for repo, patterns in _wanted(asked):
        _fetch(repo, patterns)
    found = where(name)
    if found is None:
        raise InputError(f"{asked.name} needs no file.")
    return found


def _asked(name: str) -> Asked:
    source, _, model = name.partition(":")
    if source not in SOURCES or not model:
        if source in ("builtin", "onnx", "run", "python") or name.endswith(".npy"):
            raise InputError(f"{name} is not a model of a hub.", hint="The built-in encoder comes with the package.")
        raise UnknownNameError("source of models", source, SOURCES)
    return Asked.parse(source, model)


def _wanted(asked: Asked) -> list[tuple[Repo, Sequence[str]]]:
    """Return the repositories to fetch and the files wanted of each, weights in one format only."""
    if asked.source == "hf":
        return [(Repo.parse(asked.model), (*_HF_FILES, *_weights(Repo.parse(asked.model), hf_source.WEIGHTS)))]
    if asked.model.startswith(HUB):
        repo = Repo.parse(asked.model.removeprefix(HUB))
        files = timm_source.FILES if asked.source == "timm" else open_clip_source.FILES
        return [(repo, (*_HF_FILES, *_weights(repo, files)))]
    if asked.source == "timm":
        return _wanted_of_timm(asked)
    arch, tag = asked.model.partition("/")[::2]
    open_clip = library("open_clip", feature=open_clip_source.FEATURE, extra=open_clip_source.EXTRA)
    config = open_clip.get_pretrained_cfg(arch, tag)
    if not config:
        known = [f"{arch}/{other}" for other in open_clip.list_pretrained_tags_by_model(arch)]
        raise UnknownNameError("open_clip model", asked.model, known or open_clip.list_models())
    if not config.get("hf_hub"):
        _fetch_url(config["url"])
        return []
    id_, _, name = config["hf_hub"].rpartition("/")
    repo = Repo.parse(id_)
    wanted: list[tuple[Repo, Sequence[str]]] = [
        (repo, ("*.json", *_weights(repo, tuple(filter(None, (name, *open_clip_source.FILES))))))
    ]
    text = (open_clip.get_model_config(arch) or {}).get("text_cfg", {}).get("hf_tokenizer_name")
    return [*wanted, (Repo.parse(text), _HF_FILES)] if text else wanted


def _wanted_of_timm(asked: Asked) -> list[tuple[Repo, Sequence[str]]]:
    timm = library("timm", feature=timm_source.FEATURE, extra=timm_source.EXTRA)
    if not timm.is_model(asked.model):
        raise UnknownNameError("timm model", asked.model, timm_source.close_names(timm, asked.model))
    config = timm.get_pretrained_cfg(asked.model)
    if config is None or not (config.hf_hub_id or config.url):
        raise InputError(f"timm has no published weights for {asked.model!r}.", hint="Name one with a tag.")
    if not config.hf_hub_id:
        _fetch_url(config.url)
        return []
    repo = Repo.parse(config.hf_hub_id)
    files = tuple(filter(None, (config.hf_hub_filename, *timm_source.FILES)))
    return [(repo, (*_TIMM_FILES, *_weights(repo, files)))]


def _weights(repo: Repo, preferred: Sequence[str]) -> list[str]:
    """Return the first format of weights that the repository has, all its parts."""
    hub = _hub()
    try:
        listed = set(hub.HfApi().list_repo_files(repo.id, revision=repo.revision))
    except Exception as error:
        raise _refused(repo, error) from error
    for name in preferred:
        if name in listed:
            if not name.endswith(".index.json"):
                return [name]
            stem = name.removesuffix(".index.json").rpartition(".")[0]
            return [name, *sorted(file for file in listed if file.startswith(f"{stem}-"))]
    raise InputError(f"{repo.id} holds none of {', '.join(preferred)}.", hint="It holds no weights that torch reads.")


def _fetch(repo: Repo, patterns: Sequence[str]) -> None:
    hub = _hub()
    try:
        hub.snapshot_download(repo.id, revision=repo.revision, allow_patterns=list(patterns))
    except Exception as error:
        raise _refused(repo, error) from error


def _fetch_url(url: str) -> None:
    torch = library("torch", feature="Fetching a checkpoint", extra="timm")
    torch_cache().mkdir(parents=True, exist_ok=True)
    try:
        torch.hub.download_url_to_file(url, str(torch_cache() / url.rpartition("/")[2]), progress=False)
    except (OSError, ValueError) as error:
        raise UnreachableError(
            f"{url} cannot be fetched: {error}.", hint="Check the network, then try again."
        ) from error


def _refused(repo: Repo, error: Exception) -> LookalikeError:
    """Say in one sentence why the hub did not give a repository."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if "GatedRepoError" in names:
        return UnreachableError(
            f"{repo.id} is given only to people who accepted its licence.",
            hint="Accept it on the model's page, then log in with: hf auth login.",
        )
    if "RepositoryNotFoundError" in names or "RevisionNotFoundError" in names:
        return UnreachableError(f"The hub has no {repo.id} at {repo.revision!r}, or not for everybody.")
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return UnreachableError(f"{repo.id} cannot be fetched: {first}", hint="What has arrived is kept; pull again.")


def _reach() -> None:
    """Ask the hub for anything at all, once, with a short limit.

    Raises:
        UnreachableError: no answer.
    """
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=_REACH_S).close()
    except urllib.error.HTTPError:
        return  # it answers
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(
            f"{endpoint} cannot be reached: {reason}.",
            hint="Check the network or HF_ENDPOINT, or copy the files here and name them by path.",
        ) from error


def _hub() -> Any:
    return library("huggingface_hub", feature="Fetching a model", extra="hf")
