"""Cuts the power: a log of everything that an operation writes, and images of the disk as it may be found afterwards.

What was synced is there. Of what was not synced, any part may be: whole writes, or the first blocks of one. Names
(creating, renaming, deleting) reach the disk in their order, at the latest with the next sync; the `-shm` file of SQLite,
which is only memory, never does. The images are opened with the product itself."""
import os, pathlib, random, re, shutil, sqlite3, time

from goal_operations import active_goal
from operation import Operation, expect, goal_of, left_behind, shapes
from sweep import LEAST, Result
from world import CONFIG

# Stands for all files in what was synced.
EVERYTHING = "*"
CALLS = ("write,pwrite64,ftruncate,fallocate,fsync,fdatasync,syncfs,copy_file_range,openat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,"
         "mkdir,mkdirat,rmdir")
LINE = re.compile(r"(?:\d+ +)?([a-z0-9_]+)\((.*)\) += (-?\d+)(<([^>]*)>)?")
UNFINISHED = " <unfinished ...>"
RESUMED = re.compile(r"\d+ +<\.\.\. \w+ resumed>(.*)")
BLOCK = 512


def text_of(hexadecimal):
    return bytes.fromhex(hexadecimal.replace("\\x", "")).decode(errors="surrogateescape")


def strings(arguments):
    return [text_of(found) for found in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', arguments)]


def paths(arguments, working_directory):
    """The named files of a call, absolute. Calls without a directory of their own begin at the process's."""
    directories = [text_of_path(found) for found in re.findall(r"(?:AT_FDCWD|\d+)<([^>]*)>, \"", arguments)]
    names = strings(arguments)
    directories = directories if len(directories) == len(names) else [working_directory] * len(names)
    return [os.path.normpath(os.path.join(directory, name)) for directory, name in zip(directories, names)]


def text_of_path(path):
    """With `-xx`, strace writes the paths of open files in hexadecimal, too."""
    return text_of(path) if path.startswith("\\x") else path


def size_before(path, root, saved):
    try:
        return os.path.getsize(saved / os.path.relpath(path, root))
    except OSError:
        return 0


def content_before(path, root, saved):
    try:
        return (saved / os.path.relpath(path, root)).read_bytes()
    except OSError:
        return b""


def whole_lines(text):
    """The lines of the trace, each where its call ended. While a call of one process is under way, strace prints those of
    others, and the rest of it later."""
    begun = {}
    for line in text.splitlines():
        process = line.split(" ", 1)[0]
        resumed = RESUMED.match(line)
        if line.endswith(UNFINISHED):
            begun[process] = line.removesuffix(UNFINISHED)
            yield ""
        elif resumed and process in begun:
            yield begun.pop(process) + resumed.group(1)
        else:
            yield line


def parse(text, root, saved):
    """The changes below the root, in their order; nothing for every other line, so that positions stay."""
    # Where the next `write` of each file goes, because not every write before it reaches an image.
    changes, directories, ends = [], {}, {}
    for line in whole_lines(text):
        found = LINE.match(line)
        change = None
        # Where a process is: named by every call that begins there.
        process, here = line.split(" ", 1)[0], re.search(r"AT_FDCWD<([^>]*)>", line)
        if here:
            directories[process] = text_of_path(here.group(1))
        working_directory = directories.get(process, str(root / "project"))
        if found and int(found.group(3)) >= 0:
            call, arguments, result = found.group(1), found.group(2), int(found.group(3))
            on = re.match(r"\d+<([^>]*)>", arguments)
            path = text_of_path(on.group(1)) if on else ""
            if call in ("write", "pwrite64") and path:
                data = bytes.fromhex(re.search(r'"((?:\\x[0-9a-f]{2})*)"', arguments).group(1).replace("\\x", ""))
                offset = ends.get(path, size_before(path, root, saved))
                if call == "pwrite64":
                    offset = int(arguments.rsplit(", ", 1)[1])
                else:
                    ends[path] = offset + result
                change = ("write", path, offset, data[:result])
            elif call == "ftruncate":
                change = ("truncate", path, int(arguments.rsplit(", ", 1)[1]))
            elif call in ("fsync", "fdatasync"):
                change = ("sync", path)
            elif call == "copy_file_range":
                # The kernel copies, so the data is not in the trace; what is copied was there before the operation.
                source, path = (text_of_path(name) for name in re.findall(r"\d+<([^>]*)>", arguments)[:2])
                offset = ends.get(path, 0)
                change = ("write", path, offset, content_before(source, root, saved)[offset:offset + result])
                ends[path] = offset + result
            elif call == "syncfs":
                change = ("sync", EVERYTHING)
            elif call == "openat" and ("O_CREAT" in arguments or "O_TRUNC" in arguments):
                path = text_of_path(found.group(5) or "")
                if "O_APPEND" not in arguments:
                    ends[path] = 0
                change = ("create", path, "O_TRUNC" in arguments)
            elif call.startswith("rename") or call.startswith("link"):
                source, target = paths(arguments, working_directory)
                # The end of the file goes with its name.
                ends.pop(target, None)
                if source in ends:
                    ends[target] = ends[source]
                change = ("rename" if call.startswith("rename") else "link", source, target)
            elif call.startswith("unlink") or call == "rmdir":
                path = paths(arguments, working_directory)[0]
                # A file of this name that is made later begins empty.
                ends[path] = 0
                change = ("rmdir" if call == "rmdir" or "AT_REMOVEDIR" in arguments else "unlink", path)
            elif call.startswith("mkdir"):
                change = ("mkdir", paths(arguments, working_directory)[0])
        is_inside = change and (change[1].startswith(f"{root}/") or change[0] == "sync")
        changes.append(change if is_inside else None)
    return changes


class Image:
    """The disk as it is found after the cut."""

    def apply(self, change, part=None):
        kind, path = change[0], pathlib.Path(change[1])
        try:
            if kind == "write":
                data = change[3] if part is None else change[3][:part]
                with open(path, "r+b") as file:
                    file.seek(change[2])
                    file.write(data)
            elif kind == "truncate":
                os.truncate(path, change[2])
            elif kind == "create":
                if not path.exists():
                    path.touch(0o600)
                elif change[2]:
                    os.truncate(path, 0)
            elif kind == "rename":
                os.rename(path, change[2])
            elif kind == "link":
                os.link(path, change[2])
            elif kind == "unlink":
                path.unlink()
            elif kind == "mkdir":
                path.mkdir()
            elif kind == "rmdir":
                path.rmdir()
        except FileNotFoundError:
            # The file was deleted before, or its creation was not reached.
            pass


def build(image, changes, cut, chance):
    """Applies what may be on the disk if the power goes after this many changes."""
    done = [change for change in changes[:cut] if change and not change[1].endswith("-shm")]
    last_sync = max((at for at, change in enumerate(done) if change[0] == "sync"), default=-1)
    # Names since the last sync: as many, from the first, as the disk came to.
    names = [at for at, change in enumerate(done) if at > last_sync and change[0] not in ("write", "truncate", "sync")]
    reached = chance.choice([*names, len(done)]) if names else len(done)
    synced = {}
    for at, change in enumerate(done):
        if change[0] == "sync":
            synced[change[1]] = at
        elif change[0] in ("rename", "link") and change[1] in synced:
            synced[change[2]] = synced[change[1]]
    # A file is followed under its later names, so that a sync before a rename counts.
    final = final_names(done)
    keep = chance.choice((0.0, 0.5, 0.9, 1.0))
    for at, change in enumerate(done):
        if change[0] == "sync":
            continue
        if change[0] in ("write", "truncate"):
            is_synced = any(position > at for path, position in synced.items()
                            if path == EVERYTHING or path in final.get(at, ()))
            if is_synced or chance.random() < keep:
                image.apply(change)
            elif change[0] == "write" and chance.random() < 0.5 and len(change[3]) > BLOCK:
                image.apply(change, BLOCK * chance.randrange(len(change[3]) // BLOCK))
        elif at < reached:
            image.apply(change)


def final_names(done):
    """For each write, the names that its file has from then on."""
    found = {}
    for at, change in enumerate(done):
        if change[0] in ("write", "truncate"):
            names = {change[1]}
            for later in done[at:]:
                if later[0] in ("rename", "link") and later[1] in names:
                    names.add(later[2])
            found[at] = names
    return found


class Work(Operation):
    """Six turns, each charged and acknowledged; with a second connection that keeps the WAL, or without."""

    is_hook = True
    turns = 6

    def __init__(self, keeps_wal):
        self.keeps_wal = keeps_wal
        self.name = f"six turns, {'WAL kept' if keeps_wal else 'checkpoint at each end'}"

    def prepare(self, world):
        world.write("home/config.toml", f"{CONFIG}[goal]\nno_progress_limit = 100\n")
        active_goal(world)

    def run(self, world, prefix=()):
        self.marks = []
        holder = None
        if self.keeps_wal:
            holder = sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True, check_same_thread=False)
            holder.execute("SELECT count(*) FROM goals").fetchone()
        for number in range(self.turns):
            world.says(f"m{number}", 100, text=f"step {number}")
            event = world.claude_event("Stop", stop_hook_active=number > 0, last_assistant_message=f"step {number}",
                                       background_tasks=[])
            output = world.of_client("hook", "claude", prefix=prefix, stdin=event)
            time.sleep(0.05)
            log = world.base / "trace"
            self.marks.append(len(log.read_text().splitlines()) if prefix else 0)
        if holder:
            holder.close()
        return output

    def judge_cut(self, world, cut):
        acknowledged = sum(mark <= cut for mark in self.marks)
        goal = goal_of(world)
        most = min(self.turns, acknowledged + 1)
        yield from expect("charged tokens", goal.get("total_tokens"), *range(100 * acknowledged, 100 * most + 1, 100))
        # What was not acknowledged is charged by the next turn's end.
        world.claude("Stop", stop_hook_active=True, last_assistant_message="step 5", background_tasks=[])
        world.seen = None
        yield from expect("tokens in the end", goal_of(world).get("total_tokens"), 100 * self.turns)


def cut_power(world, one, images, seed, stop_at=None, say=lambda _: None):
    result, began = Result(), time.time()
    world.clear()
    one.prepare(world)
    world.save()
    log = world.base / "trace"
    log.unlink(missing_ok=True)
    options = ["-D", "-qq", "-f", "-A", "-y", "-xx", "-s", "10000000", "-o", str(log), "-e", f"trace={CALLS}"]
    output = one.run(world, ["strace", *options])
    time.sleep(0.3)
    # Session files are the client's: it wrote them before the hook began.
    sessions = {path.name: path.read_bytes() for path in world.root.glob("*.jsonl")}
    if not hasattr(one, "judge_cut"):
        list(one.judge(world, output, False, False))
    files = shapes(world)
    changes = parse(log.read_text(errors="replace"), world.root, world.saved)
    chance = random.Random(f"{seed} power {one.name}")
    for number in range(images):
        if result.trials >= LEAST and stop_at is not None and time.time() > stop_at:
            break
        cut = len(changes) if number % 4 == 0 else chance.randrange(len(changes) + 1)
        world.restore()
        for name, data in sessions.items():
            world.path(name).write_bytes(data)
        build(Image(), changes, cut, chance)
        result.trials += 1
        result.hits += any(change for change in changes[:cut])
        try:
            problems = [*judge(world, one, output, cut, len(changes)), *left_behind(world, files)]
        except Exception as error:  # A judge that cannot judge is a finding, not the end of the sweep.
            problems = [f"the judge failed: {type(error).__name__}: {error}"]
        for problem in problems:
            kept = world.base.parent / f"{world.base.name}-image-{number}"
            result.problems.append({"method": "power", "operation": one.name, "at": cut, "of": len(changes),
                                    "image": number, "problem": problem})
            say(f"PROBLEM power, {one.name}: cut at {cut} of {len(changes)}, image {number}: {problem[:600]}")
            if os.environ.get("FAULTS_KEEP"):
                shutil.copytree(world.root, kept, dirs_exist_ok=True)
    result.seconds = time.time() - began
    return result


def judge(world, one, output, cut, everything):
    if hasattr(one, "judge_cut"):
        yield from one.judge_cut(world, cut)
        checked = world.person("db", "check", "--json")
        if checked.code != 0:
            yield f"the store is damaged: {checked}"
    else:
        yield from one.judge(world, output, cut < everything, False)
