"""The program `nmt`, which `python -m nmt` starts as well."""

import gc


def main() -> None:
    """Run the command line.

    Garbage is collected less often than by default, because imports make many objects and no
    garbage. With the default, `nmt --help` spent 7 of its 75 ms on it. A command that imports
    PyTorch spent 60 ms on it.
    """
    gc.set_threshold(200_000)  # new objects between two collections
    from nmt.cli.app import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
