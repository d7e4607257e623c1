"""Fails, or kills at, the i-th system call of an operation, for i = 1, 2, 3 … until the operation comes through untouched.

`strace -D` makes the tracer a grandchild, so that the traced process stays the child of its client, and the product's
proof of its caller holds. Each system call is counted for itself. Calls of the loader, before `main`, are skipped."""
import collections, random, re, time

import operation

DISK = ("ENOSPC", "EIO", "EDQUOT")
NAMES = ("EACCES", "EIO", "ENOSPC", "EDQUOT")
LOOKS = ("EACCES", "EIO", "ENOMEM")
# Which errors a call can really return. The system reports a full memory by another value of `brk`, which cannot be injected.
ERRORS = {
    "openat": ("EMFILE", "EACCES", "EIO", "ENOSPC", "ENOMEM", "EDQUOT"),
    "read": ("EIO",), "pread64": ("EIO",), "getdents64": ("EIO", "ENOMEM"), "lseek": ("EIO",),
    "write": DISK, "pwrite64": DISK, "fsync": DISK, "fdatasync": DISK, "ftruncate": DISK, "fallocate": DISK,
    "statx": LOOKS, "newfstatat": LOOKS, "fstat": LOOKS, "access": LOOKS, "faccessat2": LOOKS, "readlink": LOOKS,
    "statfs": LOOKS, "fstatfs": LOOKS,
    "rename": NAMES, "renameat": NAMES, "renameat2": NAMES, "link": NAMES, "linkat": NAMES, "mkdir": NAMES,
    "mkdirat": NAMES, "symlink": NAMES, "unlink": ("EACCES", "EIO"), "unlinkat": ("EACCES", "EIO"),
    "rmdir": ("EACCES", "EIO"), "chmod": ("EACCES", "EIO"), "fchmod": ("EACCES", "EIO"), "fchmodat": ("EACCES", "EIO"),
    "fchown": ("EACCES", "EIO"), "utimensat": ("EACCES", "EIO"),
    "mmap": ("ENOMEM",), "mremap": ("ENOMEM",),
    "fcntl": ("ENOLCK", "EMFILE"), "flock": ("ENOLCK",), "pipe2": ("EMFILE",), "socketpair": ("EMFILE",),
    "clone": ("ENOMEM",), "clone3": ("ENOMEM",), "vfork": ("ENOMEM",), "fork": ("ENOMEM",),
}
# What changes something outside of the process: between two of these, a kill leaves the same behind.
CHANGES = ("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat",
           "renameat2", "link", "linkat", "mkdir", "mkdirat", "symlink", "unlink", "unlinkat", "rmdir", "chmod", "fchmod",
           "fchmodat", "fchown", "utimensat", "fcntl", "flock", "clone", "clone3", "vfork", "fork", "kill", "wait4",
           "waitid", "exit_group")
MEMORY = ("mmap", "mremap")
# Longer than any operation makes system calls of one kind.
MOST = 5000


# So many trials are made even if the time is over.
LEAST = 2


class Result:
    def __init__(self):
        self.trials = self.hits = 0
        self.problems = []
        self.seconds = 0.0


def trace(world, one, injection, calls):
    """Runs the operation below strace. Returns what it said and what strace saw."""
    log = world.base / "trace"
    log.unlink(missing_ok=True)
    follow = ["-f"] if one.with_children else []
    world.seen = None
    output = one.run(world, ["strace", "-D", "-qq", *follow, "-o", str(log), "-e", f"trace={calls}", *injection])
    for _ in range(100):
        text = log.read_text(errors="replace") if log.exists() else ""
        if "+++ exited" in text or "+++ killed" in text:
            break
        time.sleep(0.01)
    return output, text


def count(text):
    """How often each call was made, and how often by the loader, before the runtime set up its signal stack. Where
    children are followed, strace counts for each process; the one with most calls is taken, and the loader of the first."""
    every, loader, stacks, first = collections.defaultdict(collections.Counter), collections.Counter(), 0, None
    for line in text.splitlines():
        process, name = re.match(r"(\d+ +)?([a-z_0-9]*)", line).groups()
        first = first or process or "main"
        process = process or "main"
        every[process][name] += 1
        if process == first and name == "sigaltstack":
            stacks += 1
            if stacks == 2:
                loader = every[first].copy()
    most = collections.Counter()
    for counts in every.values():
        most |= counts
    return most, loader


def reference(world, one):
    """The calls of an untouched run, those of the loader, and the files that are there afterwards."""
    world.restore()
    output, text = trace(world, one, [], "all")
    if output.code not in one.done_codes:
        raise RuntimeError(f"{one.name} does not work without a fault: {output}")
    problems = list(one.holds(world)) if one.said_done(output) else []
    if problems:
        raise RuntimeError(f"{one.name} without a fault: {problems}: {output}")
    files = operation.shapes(world)
    world.seen = None
    problems = list(one.judge(world, output, False, False))
    if problems:
        raise RuntimeError(f"{one.name} without a fault: {problems}")
    return *count(text), files | operation.shapes(world)


def sweep(world, one, method, every, seed, stop_at=None, say=lambda _: None, only=None):
    """All trials of one method on one operation, or `only` one, as CALL:NUMBER or CALL:NUMBER:ERROR."""
    result, began = Result(), time.time()
    world.clear()
    one.prepare(world)
    world.save()
    counts, loader, files = reference(world, one)
    chance = random.Random(f"{seed} {method} {one.name}")
    calls = sorted(set(ERRORS if method == "errors" else CHANGES) & set(counts))
    is_over = lambda: result.trials >= LEAST and stop_at is not None and time.time() > stop_at
    if only:
        call, at, *error = only.split(":")
        trial(world, one, method, call, int(at), chance, files, result, say, *error)
    elif every > 1:
        moments = [(call, at) for call in calls for at in range(loader[call] + 1, counts[call] + 1)]
        for call, at in moments[chance.randrange(min(every, len(moments))):: every]:
            if not is_over():
                trial(world, one, method, call, at, chance, files, result, say)
    else:
        for call in calls:
            at = loader[call] + 1
            while at < MOST and not is_over() and trial(world, one, method, call, at, chance, files, result, say):
                at += 1
    result.seconds = time.time() - began
    return result


def trial(world, one, method, call, at, chance, files, result, say, error=None):
    world.restore()
    fault = f"error={error or chance.choice(ERRORS[call])}" if method == "errors" else "signal=KILL"
    output, text = trace(world, one, ["-e", f"inject={call}:{fault}:when={at}"], call)
    was_hit = "(INJECTED)" in text if method == "errors" else "+++ killed by SIGKILL" in text
    was_killed = method == "kills" and was_hit
    result.trials += 1
    result.hits += was_hit
    try:
        problems = list(one.judge(world, output, was_killed, call in MEMORY))
        problems += operation.left_behind(world, files)
    except Exception as error:  # A judge that cannot judge is a finding, not the end of the sweep.
        problems = [f"the judge failed: {type(error).__name__}: {error}"]
    for problem in problems:
        found = {"method": method, "operation": one.name, "call": call, "at": at, "fault": fault, "problem": problem,
                 "output": repr(output)}
        result.problems.append(found)
        say(f"PROBLEM {one.name}: {call} #{at} {fault}: {re.sub(chr(10), ' / ', problem)[:600]}\n   it said: "
            f"{re.sub(chr(10), ' / ', repr(output))[:500]}")
    return was_hit
