"""The program `nmt`, which `python -m nmt` starts as well."""

import gc


def main() -> None:
    """Run the command line.

    Garbage is collected less often than by default: imports make many objects and no garbage. By
    default the collection took 7 of the 75 ms of `nmt --help`, and 60 ms of importing PyTorch.
    """
    gc.set_threshold(200_000)  # new objects between two collections
    from nmt.cli.app import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
