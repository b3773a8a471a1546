"""What a corpus was made from, remembered in a small JSON file beside its text.

Where nobody publishes the hash of a file, the first download decides: a later one that differs is
noticed. Likewise the revision or version that was the newest then is the one that is taken again.
"""

from dataclasses import dataclass
from pathlib import Path

from nmt.errors import DataError
from nmt.files import FORMAT_KEY, check_format, read_json, write_json

FORMAT = 1
"""The version of the file's layout."""

Entry = dict[str, str | int]


@dataclass(frozen=True)
class Provenance:
    """Entries by the address of what they describe."""

    path: Path

    def recall(self, address: str) -> Entry:
        """What is remembered of an address; nothing: an empty entry.

        Raises:
            DataError: the file is not legible.
        """
        return self._entries().get(address, {})

    def remember(self, address: str, entry: Entry) -> None:
        """Keep an entry, on disk before this returns.

        Raises:
            DataError: the file cannot be read or written.
        """
        record = {FORMAT_KEY: FORMAT, **self._entries(), address: entry}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, record)
        except OSError as error:
            raise DataError(
                f"{self.path}: cannot be written: {error.strerror}; free some space or choose "
                "another directory"
            ) from error

    def _entries(self) -> dict[str, Entry]:
        try:
            entries = read_json(self.path)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._illegible(str(error)) from error
        check_format(entries, FORMAT, self.path, "choose another data.directory")
        entries.pop(FORMAT_KEY, None)
        if not all(isinstance(entry, dict) for entry in entries.values()):
            raise self._illegible("not an object of objects")
        return entries

    def _illegible(self, reason: str) -> DataError:
        return DataError(
            f"{self.path}: not the record of downloads that it should be ({reason}); delete it to "
            "accept what is downloaded next"
        )
