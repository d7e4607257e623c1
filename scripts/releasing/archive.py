"""Archives that are the same bytes for the same files: sorted, owned by root, with one time."""

import gzip
import hashlib
import io
import pathlib
import tarfile

# Of gzip and xz: 9 is the smallest, 1 the fastest.
LEVEL = 9


def tar_gz(target, root, files, epoch):
    """Packs `files` (path in the archive below `root` -> bytes, is executable) into `target`."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, (content, executable) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{root}/{path}")
            entry.size, entry.mtime = len(content), epoch
            entry.mode = 0o755 if executable else 0o644
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(content))
    pathlib.Path(target).write_bytes(compressed(plain.getvalue()))


def compressed(content):
    return gzip.compress(content, LEVEL, mtime=0)


def checksums(directory):
    """SHA256SUMS of every other file in `directory`, as `sha256sum -c` reads it."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(directory.iterdir())
        if path.is_file() and path.name != "SHA256SUMS"
    ]
    (directory / "SHA256SUMS").write_text("".join(lines))
