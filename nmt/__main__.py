"""The program `nmt`, which `python -m nmt` starts as well."""

import gc


def main() -> None:
    """Run the command line.

    Garbage is looked for less often than Python does by default: the imports make many objects and
    no garbage, and looking took 7 of the 75 ms of `nmt --help`, and 60 ms of importing PyTorch.
    """
    gc.set_threshold(200_000)
    from nmt.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
