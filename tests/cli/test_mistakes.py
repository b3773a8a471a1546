"""A mistake in a command line is one sentence and nothing on stdout: a row for each message."""

import shlex
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, ConfigError, DataError, NmtError
from tests.cli.commands import invoke, write_lines

FILES = {
    "three": ["the cat sat on the mat.", "", "a dog barks at the big tree."],
    "other": ["the cat sat on a mat.", "no.", "a dog barks at the big tree."],
    "short": ["the cat sat on the mat.", "no."],
    "empty": [],
    "pieces": ["the c@@ at", "a d@@ og", "b"],
    "tokens": ["the cat sat on the mat .", "no", "a dog ."],
    "columns": ["a\tb", "ab"],
    "list.jsonl": ['{"source": "a"}', "[]"],
}

TRANSLATE = [
    ("-m .", CheckpointError, "not a run directory"),
    ("-m RUN --checkpoint step-9", CheckpointError, "step-9"),
    ("-m RUN none", DataError, "none: cannot be read: No such file"),
    ("-m RUN .", DataError, ".: cannot be read: Is a directory"),
    ("-m RUN -o none/out", DataError, "none/out: cannot be written: No such file or directory"),
    ("-m RUN -o .", DataError, ".: cannot be written: Is a directory"),
    ("-m RUN --json-input list.jsonl", DataError, "list.jsonl:2: a list"),
    ("-m RUN --top-k 3", ConfigError, "add --sample"),
    ("-m RUN --n-best 9", ConfigError, "9 translations of each line were asked for"),
    (
        "-m RUN --length-penalty 1 --length-normalization average",
        ConfigError,
        "leave one of them out",
    ),
    ("-m RUN --candidates 3", ConfigError, "how many --mbr compares; add --mbr chrf"),
    ("-m RUN --mbr chrf --beam-size 1", ConfigError, "there is 1; raise --beam-size"),
    ("-m RUN --mbr chrf --candidates 9", ConfigError, "the beam holds 2; raise --beam-size"),
    (
        "-m RUN --mbr bleu --sample --candidates 2 --n-best 3",
        ConfigError,
        "of 2 candidates; raise --candidates",
    ),
    ("-m RUN --document --n-best 2", ConfigError, "leave them out"),
    ("-m RUN --document --alignments", ConfigError, "leave them out"),
    ("-m RUN --sample --forbid a", ConfigError, "leave out --sample"),
    ("-m RUN three --workers 2 --sample --forbid a", ConfigError, "leave out --sample"),
    ("-m RUN --sample --shortlist 3", ConfigError, "leave out --shortlist"),
    ("-m RUN --resume -o out", ConfigError, "stdin does not allow; give the input as a FILE"),
    ("-m RUN --resume - -o out", ConfigError, "stdin does not allow"),
    ("-m RUN --resume three", ConfigError, "give a regular file as -o FILE"),
    ("-m RUN --resume three -o -", ConfigError, "give a regular file as -o FILE"),
    ("-m RUN --resume three -o .", ConfigError, "give a regular file as -o FILE"),
    ("-m RUN --resume three -o /dev/null", ConfigError, "give a regular file as -o FILE"),
]
EVAL_BLEU = [
    ("", ConfigError, "give either --model"),
    ("--model m --hypothesis h", ConfigError, "give either --model"),
    ("--hypothesis h", ConfigError, "files of translations need --reference FILE"),
    ("--hypothesis h --reference r --source s", ConfigError, "only --comet looks at --source"),
    ("--hypothesis h --reference r --comet", ConfigError, "add --source FILE"),
    ("--hypothesis h --reference r --comet-model c", ConfigError, "c goes with --comet"),
    ("--hypothesis h --reference r --output o", ConfigError, "leave out --output"),
    ("--hypothesis h --test-set test", ConfigError, "is a run's own and there is no --model"),
    ("--hypothesis h --test-set wmt14", ConfigError, "add --languages, such as en-de"),
    ("--hypothesis h --languages de", ConfigError, "expected source and target, such as"),
    ("--hypothesis h --languages de-de", ConfigError, "expected source and target, such as"),
    ("--hypothesis h --languages DE-de", ConfigError, "expected source and target, such as"),
    ("--hypothesis h --languages en-GB-de", ConfigError, "such as en-de (or en_GB-de_AT)"),
    ("--hypothesis h --languages english-german", ConfigError, "'english' is not a language code"),
    ("--hypothesis h --languages en-d3", ConfigError, "'d3' is not a language code"),
    ("--model m --languages en-de", ConfigError, "m is a run and knows its languages"),
    ("--model m --source s", ConfigError, "--source and --reference go together"),
    ("--model m --reference r", ConfigError, "--source and --reference go together"),
    ("--model m --tokenized", ConfigError, "m is a run and knows data.tokenized"),
    ("--test-set test --source s", ConfigError, "--test-set test and --source name two texts"),
    ("--test-set test --reference r", ConfigError, "test and --reference name two texts"),
    ("--model .", CheckpointError, "not a run directory"),
    ("--model RUN --source short --reference three", DataError, "has 3 lines"),
    ("--hypothesis short --reference other", DataError, "short has 2 lines, other has 3 lines"),
    ("--hypothesis empty --reference empty", DataError, "empty is empty; expected one translation"),
    ("--hypothesis none --reference other", DataError, "none: no such file"),
    ("--hypothesis pieces --reference other", DataError, "pieces of words (marked '@@')"),
    ("--hypothesis tokens --reference other", DataError, "tokens is tokenised (2 of 2 full stops"),
    ("--hypothesis tokens --reference other", DataError, "--no-text-checks"),
]
SCORE = [
    ("-m m --source s", ConfigError, "--source and --reference go together"),
    ("-m m --reference r", ConfigError, "--source and --reference go together"),
    ("-m m f --source s --reference r", ConfigError, "f and --source name two texts"),
    ("-m m --per-token", ConfigError, "--per-token goes with --json"),
    ("-m RUN --precision int8", ConfigError, "int8 is for translating; score in fp32 or bf16"),
    ("-m .", CheckpointError, "not a run directory"),
    ("-m . --source three --reference short", DataError, "three has 3 lines, short has 2 lines;"),
    ("-m RUN", DataError, "stdin:1: 1 column, expected 2 separated by a tab"),
    ("-m RUN three", DataError, "three:1: 1 column"),
]
COMPARE = [
    ("three", ConfigError, "three alone cannot be compared; give another run"),
    ("three other", ConfigError, "files of translations need --reference FILE, or --test-set NAME"),
    ("three other --test-set wmt14", ConfigError, "add --languages, such as en-de"),
    ("three other --test-set test", ConfigError, "is a run's own and there is no --model"),
    ("three other --test-set wmt14 --reference r", ConfigError, "name two texts; leave out one"),
    ("RUN three --source s", ConfigError, "is a run: --source and --reference go together"),
    ("RUN three --tokenized", ConfigError, "is a run and knows data.tokenized"),
    ("RUN three --languages en-de", ConfigError, "is a run and knows its languages"),
    ("three none --reference other", DataError, "none: no such run directory, checkpoint or file"),
    ("three pieces --reference other", DataError, "pieces is still in pieces of words"),
    ("short three --reference other", DataError, "short has 2 lines, other has 3 lines"),
]
OTHERS = [
    ("average --model none", CheckpointError, "no such directory"),
    ("average --model RUN --last 5", CheckpointError, "RUN: 5 checkpoints asked for, it has 1"),
    ("data download multi30", ConfigError, "did you mean 'multi30k'?"),
    ("data download demo --target-language fr", ConfigError, "has no any-fr; it has en-de"),
    ("data download demo --from absent", ConfigError, "absent: no such file or folder"),
    ("data download multi30k --directory . --from .", DataError, "none of train.en.gz, train.en, "),
    ("doctor --set seed=1", ConfigError, "give one with --config"),
    ("eval-bleu -m RUN --shortlist 3", ConfigError, "nmt shortlist --model RUN"),
    ("plan --config demo.yaml --set model.head=4", ConfigError, "did you mean 'heads'?"),
    ("plot attention -m none text", CheckpointError, "none: not a run directory"),
    ("plot loss -m RUN", DataError, "metrics.jsonl: no metrics here"),
    ("prepare --config demo --set tokenizer.size=9", ConfigError, "unknown key 'tokenizer.size'"),
    ("report -m .", CheckpointError, "not a run directory"),
    ("train --config demo --set training.max_stepps=4", ConfigError, "did you mean 'max_steps'?"),
    ("watch .", CheckpointError, "not a run directory"),
]
MISTAKES = [
    *((f"translate {line}", error, message) for line, error, message in TRANSLATE),
    *((f"eval-bleu {line}", error, message) for line, error, message in EVAL_BLEU),
    *((f"score {line}", error, message) for line, error, message in SCORE),
    *((f"compare {line}", error, message) for line, error, message in COMPARE),
    *OTHERS,
]
WRONG_USAGE = [
    *[f"translate -m RUN --beam-size {value}" for value in ("0", "x")],
    *[f"translate -m RUN --length-penalty {value}" for value in ("-1", "nan", "inf")],
    *[f"score -m RUN --length-penalty {value}" for value in ("-1", "nan")],
    *("translate -m RUN --mbr ter", "translate -m RUN --batch-tokens x"),
    *("score -m RUN --batch-tokens 0", "plot attention text -m RUN --kind self"),
    *("average --model . --last 0", "average --model . --last many", "plot loss -m RUN --output ."),
]


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)
    for name, lines in FILES.items():
        write_lines(tmp_path / name, lines)


def files_here() -> list[Path]:
    return sorted(path for path in Path().iterdir() if path.is_file())


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(("line", "error", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(
    tiny_run: Path, line: str, error: type[NmtError], message: str
) -> None:
    before = files_here()
    result = invoke(*shlex.split(line.replace("RUN", str(tiny_run))), text="a dog\n")
    assert isinstance(result.exception, error), (result.output, result.exception)
    assert message.replace("RUN", str(tiny_run)) in str(result.exception)
    assert result.stdout == ""
    assert files_here() == before


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_names_the_option(tiny_run: Path, line: str) -> None:
    result = invoke(*shlex.split(line.replace("RUN", str(tiny_run))), text="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert line.rsplit(maxsplit=2)[1] in result.stderr
