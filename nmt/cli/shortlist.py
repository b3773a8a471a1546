"""`nmt shortlist`: which target tokens a source may need, learnt from a run's training data."""

from pathlib import Path
from typing import Annotated

import typer


def shortlist(
    model: Annotated[Path, typer.Option("--model", "-m", metavar="RUN", help="The run directory.")],
) -> None:
    """Learn what `nmt translate --shortlist N` chooses from.

    Prints how much of the validation set's translations each N would have, sentence by sentence.
    """
    from tqdm import tqdm

    from nmt.cli.lines.streams import check_output, log
    from nmt.cli.options.test_set import text_files
    from nmt.data.corpora.registry import obtain_splits
    from nmt.data.prepared import prepare
    from nmt.data.text.parallel_text import ParallelText
    from nmt.data.tokens.lexicon import ITERATIONS, Lexicon
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.errors import DataError
    from nmt.run.directory import find_run
    from nmt.search.shortlist import Shortlist

    directory = find_run(model)
    config, tokenizer = directory.config_with_texts(), Tokenizer.load(directory.tokenizer)
    check_output(directory.shortlist, text_files(config.data))
    with directory.lock():
        prepared = prepare(config, log)
        if tokenizer.differs_from(prepared.tokenizer):
            raise DataError(
                f"{prepared.directory}: not the vocabulary that {directory.path} was trained with; "
                "put back the training text as it was then"
            )
        pairs_to_learn = prepared.plain_train
        lexicon = Lexicon(pairs_to_learn, tokenizer.target.size)  # translation probabilities
        # disable=None hides the bar where stderr is no terminal
        with tqdm(total=ITERATIONS, desc="IBM Model 1", unit="iteration", disable=None) as bar:
            lexicon.learn(report=lambda iteration: bar.update())  # by one for each iteration
        learnt = Shortlist.learn(lexicon, pairs_to_learn, tokenizer)
        learnt.save(directory.shortlist, tokenizer)
    typer.echo(str(directory.shortlist))
    validation = obtain_splits(config.data).validation
    pairs = [pair for text in validation for pair in ParallelText(text, config.data.languages)]
    sources = tokenizer.source.encode([pair.source for pair in pairs])
    targets = tokenizer.target.encode([pair.target for pair in pairs])
    for count in (5, 10, 20, 50, 100):  # useful values of --shortlist
        share = learnt.first(count).coverage(sources, targets)
        typer.echo(f"--shortlist {count:<4} {share:7.2%} of the validation set's tokens")
