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


# CPython keeps the frames of nested calls in pieces of 16 kB of memory, and maps and unmaps one at
# each call of a loop that stands at the end of a piece: 40 ms when NumPy was imported there. As
# `main` claims a large frame, its piece is larger, and the frames of all that it calls fit into it.
main.__code__ = main.__code__.replace(co_stacksize=20_000)


if __name__ == "__main__":
    main()
