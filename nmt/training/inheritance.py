"""What a fine-tuned run takes over from its parent where the recipe says nothing."""

import shutil
from pathlib import Path
from typing import Any

from nmt.data.tokens.tokenizer import SHARED, SOURCE, TARGET
from nmt.data.tokens.vocabulary import kind_of
from nmt.errors import ConfigError
from nmt.files import create_folder_atomically, write_atomically
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config, replace_settings
from nmt.run.directory import RunDirectory, find_run, weights_folder


def inherit(recipe: Config, directory: RunDirectory | None = None) -> Config:
    """Return the settings of a recipe, completed by those of its parent.

    The parent is `training.initialize_from`; without it, `recipe` is returned as it is. Model,
    languages and decoding are taken key by key, the tokenizer only if the recipe has no such
    section. `directory` is that of the fine-tuned run. Once the run has begun, its directory holds
    what it inherited; the settings are read there, because the parent may be gone by then.

    Raises:
        CheckpointError: the parent is missing.
        ConfigError: its configuration is missing, or does not fit the recipe.
    """
    if not recipe.training.initialize_from:
        return recipe
    if directory and directory.saved_checkpoints():  # the run has begun
        inherited_from = directory
    else:
        inherited_from = find_run(weights_folder(Path(recipe.training.initialize_from)))
    inherited = load_config(str(inherited_from.config))
    own = recipe.model_dump(exclude_unset=True)  # what the recipe itself says
    languages = inherited.data.model_dump(include={"source_language", "target_language"})
    tags = [*inherited.data.language_tags, *recipe.data.language_tags]
    changes: dict[str, Any] = {
        "model": inherited.model.model_dump() | own.get("model", {}),
        "decoding": inherited.decoding.model_dump() | own.get("decoding", {}),
        "data": languages | own.get("data", {}) | {"language_tags": [*dict.fromkeys(tags)]},
    }
    if "tokenizer" not in recipe.model_fields_set:
        models = _tokenizer_settings(inherited_from)
        changes["tokenizer"] = inherited.tokenizer.model_dump() | models
    return replace_settings(recipe, changes, f"training.initialize_from: {inherited_from.path}")


def keep_without_parent(config: Config, recipe: Config, directory: RunDirectory) -> Config:
    """Keep what a run needs of its parent, which may be gone when the run is resumed or exported.

    The folder `imported/` of the parent, if it has one, is copied into a run that has not begun:
    its files say where the weights come from, and exports need them. So is the parent's shortlist
    where the tokenizer is the parent's, too: what is learnt from the text of a domain alone lacks
    most words. Returns `config`, which is what `inherit` returned for `recipe`; an inherited
    tokenizer is now the copy in the run.
    """
    if not config.training.initialize_from:
        return config
    has_own_tokenizer = "tokenizer" in recipe.model_fields_set
    if not directory.saved_checkpoints():
        parent = find_run(weights_folder(Path(config.training.initialize_from)))
        if parent.imported.is_dir() and not directory.imported.exists():
            with create_folder_atomically(directory.imported) as folder:
                shutil.copytree(parent.imported, folder, dirs_exist_ok=True)
        if parent.shortlist.is_file() and not has_own_tokenizer:
            write_atomically(directory.shortlist, parent.shortlist.read_bytes())
    if has_own_tokenizer:
        return config
    models = config.tokenizer.model_dump(include={"model", "target_model"})
    copies = {}
    for key, path in models.items():
        if path:
            copies[key] = str(directory.tokenizer / Path(path).name)
    return config.model_copy(update={"tokenizer": config.tokenizer.model_copy(update=copies)})


def _tokenizer_settings(directory: RunDirectory) -> dict[str, object]:
    """Return the settings that name the tokenizer of a run; raise a ConfigError without one."""
    shared, source, target = (directory.tokenizer / name for name in (SHARED, SOURCE, TARGET))
    if shared.is_file():
        models = {"model": str(shared), "target_model": None}
        return {"shared": True, **models, "kind": kind_of(shared)}
    if source.is_file() and target.is_file():
        models = {"model": str(source), "target_model": str(target)}
        return {"shared": False, **models, "kind": kind_of(source)}
    raise ConfigError(
        f"training.initialize_from: {directory.path} has no tokenizer; restore its folder "
        f"{directory.tokenizer.name}/, or give the recipe a tokenizer section"
    )
