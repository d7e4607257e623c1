"""Runs the shell blocks of the documentation.

The blocks of a page run in order in one shell, in a home and a project of their own, with scripted clients:

- ```sh is run and must exit with 0; ```claude and ```codex are typed into stand-ins for these clients, and the answers
  must have the lines that follow each `> ` line;
- a ```yaml, ```toml, ```markdown or ```json block whose first line is a comment with a path becomes that file;
- `<!-- sh: COMMAND -->`, and lines between `<!-- sh` and `-->`, run unseen: preparations and checks;
- `<!-- with a live session -->` opens a session of Claude Code's stand-in in the project before the page begins;
- `<!-- with a Temporal server -->` needs `temporal` (TEMPORAL_BIN) and `steadfast-fleet` (beside STEADFAST_BIN) for the
  page, and puts them on PATH; without them the page is skipped. The page starts the server itself;
- `<!-- not run: WHY -->` above a block leaves it out; `<!-- until stopped -->` runs it until it has settled, and stops it;
  `<!-- in the background -->` runs it as in a terminal of its own, until the page ends.

A page that fails is run once more, and is printed as FLAKY if it passes then. Exit code 77: all blocks that were run
passed, but a page was skipped. What agents of runs do is in the shell script `$AGENT`, which a hidden block of the page
writes.
"""
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pages import ENDLESS, REPOSITORY, blocks, is_run, pages

STAND_IN = Path(__file__).with_name("stand_in.py")
# Pages whose commands are for a clone of this repository.
ELSEWHERE = {
    "docs/reliability.md": "`./test` runs `./faults --short`",
    "docs/benchmarks.md": "benchmarks are not tests",
}
FILES = ("yaml", "toml", "markdown", "json")
NAMED = re.compile(r"^(?:# |<!-- |// )(\.claude/[\w./-]+|~/[\w./-]+|[\w.-]+\.(?:md|sh|yaml|toml|json))(?: -->)?$")
LIMIT = 180
LIVE = "<!-- with a live session -->"
TEMPORAL = "<!-- with a Temporal server -->"
# Languages of blocks that are typed into a client.
HOSTS = ("claude", "codex")
RUN = ("sh", *HOSTS)


def named_file(block):
    """The file that the first line of a block names, and the rest."""
    first, _, rest = block.text.partition("\n")
    matched = NAMED.match(first) if block.language in FILES else None
    return (matched[1], rest) if matched else None


def script_of(todo):
    """One shell script that says which block it has reached."""
    parts = ["set -eo pipefail\n"]
    for number, block in enumerate(todo):
        parts.append(f"echo {number} >&9\n")
        file = named_file(block)
        if file:
            path, text = file
            parts.append(f"mkdir -p $(dirname {path})\ncat > {path} <<'END OF THE FILE'\n{text}END OF THE FILE\n")
        elif block.language in HOSTS:
            typing = f"python3 {shlex.quote(str(STAND_IN))} type {block.language}"
            parts.append(f"{typing} <<'END OF TYPING'\n{block.text}END OF TYPING\n")
        elif block.mark == "until stopped":
            parts.append(f"until_stopped <<'END OF THE BLOCK'\n{block.text}END OF THE BLOCK\n")
        elif block.mark == "in the background":
            parts.append(f"in_background <<'END OF THE BLOCK'\n{block.text}END OF THE BLOCK\n")
        else:
            parts.append(block.text)
    parts.append(f"echo {len(todo)} >&9\n")
    return "".join(parts)


# Runs each command for two seconds and ends it; one that ended before has failed.
UNTIL_STOPPED = r"""
until_stopped() {
  while IFS= read -r command; do
    case $command in ''|'#'*) continue ;; esac
    bash -c "exec $command" < /dev/null > "$SANDBOX/stopped.log" 2>&1 &
    local pid=$!
    sleep 2
    if ! kill -0 "$pid" 2>/dev/null; then cat "$SANDBOX/stopped.log"; echo "ended by itself: $command"; return 1; fi
    kill -TERM "$pid"; wait "$pid" || true
  done
}
"""

# Runs a block as in another terminal, with what it prints in `$SANDBOX/background.N`. A block that ends before the page
# has failed; the page sees that at its next step that needs it.
IN_BACKGROUND = r"""
backgrounds=0
in_background() {
  backgrounds=$((backgrounds + 1))
  cat > "$SANDBOX/background.sh.$backgrounds"
  bash -e "$SANDBOX/background.sh.$backgrounds" < /dev/null > "$SANDBOX/background.$backgrounds" 2>&1 9>&- &
}
# until_ok COMMAND: tries it until it succeeds; prints what blocks in the background said if it does not.
until_ok() {
  for _ in $(seq 300); do if "$@" > "$SANDBOX/tried" 2>&1; then return; fi; sleep 0.2; done
  tail -n 20 "$SANDBOX"/tried "$SANDBOX"/background.[0-9]*
  echo "not within a minute: $*"
  return 1
}
"""

AGENT = r"""#!/bin/sh
# Stands in for a client in runs: does what $AGENT says, and answers as Claude Code does.
case $1 in --version) echo '2.1.197 (Claude Code)'; exit ;; esac
prompt=$(cat)
said='done'
if [ -f "$AGENT" ]; then . "$AGENT"; fi
usage='"usage":{"input_tokens":900,"output_tokens":80}'
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.01,%s}\n' "$said" "$usage"
"""
CODEX = r"""#!/bin/sh
case $1 in
  --version) echo 'codex-cli 0.166.0' ;;
  # What `goal resume --continue` calls.
  exec) printf '%s\n' "$@" > "$SANDBOX/codex.argv" ;;
  *) exit 1 ;;
esac
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def fleet_programs():
    """The programs that a page with a Temporal server needs, by their names on PATH; paths that are not there are `None`."""
    server = os.environ.get("TEMPORAL_BIN")
    paths = {"temporal": server and Path(server),
             "steadfast-fleet": Path(os.environ["STEADFAST_BIN"]).with_name("steadfast-fleet")}
    return {name: path if path and path.is_file() else None for name, path in paths.items()}


def missing(page):
    """Why a page cannot be run here, or an empty text."""
    if TEMPORAL not in page.read_text():
        return ""
    absent = [name for name, path in fleet_programs().items() if path is None]
    return f"{' and '.join(absent)} cannot be had here" if absent else ""


def world(sandbox):
    """A home, a project in git, and programs."""
    for name in ("home", "project", "bin", "tmp"):
        (sandbox / name).mkdir()
    (sandbox / "bin/steadfast").symlink_to(os.environ["STEADFAST_BIN"])
    program(sandbox / "bin/claude", AGENT)
    program(sandbox / "bin/codex", CODEX)
    program(sandbox / "bin/bd", "#!/bin/sh\necho '[]'\n")
    keep = {name: os.environ[name] for name in ("LANG", "TERM", "TZ") if name in os.environ}
    environment = {
        **keep,
        "HOME": str(sandbox / "home"),
        "TMPDIR": str(sandbox / "tmp"),
        "PATH": f"{sandbox / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SANDBOX": str(sandbox),
        "AGENT": str(sandbox / "agent.sh"),
        "REPOSITORY": str(REPOSITORY),
        "STEADFAST_NO_WATCH": "1",
        "IS_SANDBOX": "1",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))},
    }
    prepare = "git init -q -b main . && echo '# A project' > README.md && git add -A && git commit -qm begin"
    subprocess.run(["sh", "-c", prepare], cwd=sandbox / "project", env=environment, check=True)
    return environment


def start_clients(page, todo, sandbox, environment):
    """The stand-ins that a page needs. Claude Code is set up for it; a page for Codex does that itself."""
    hosts = {block.language for block in todo} & set(HOSTS)
    if LIVE in page.read_text():
        hosts.add("claude")
    clients = []
    for host in sorted(hosts):
        if host == "claude":
            subprocess.run(["steadfast", "setup", "claude", "--yes"], env=environment, cwd=sandbox / "project", check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        client = subprocess.Popen([sys.executable, STAND_IN, "serve", host], env=environment, cwd=sandbox / "project",
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client.stdout.readline()
        clients.append(client)
    return clients


def run_page(page, todo):
    """Returns how many blocks passed, and a message if one failed."""
    with tempfile.TemporaryDirectory(prefix="docs-", ignore_cleanup_errors=True) as directory:
        sandbox = Path(directory).resolve()
        environment = world(sandbox)
        if TEMPORAL in page.read_text():
            for name, path in fleet_programs().items():
                (sandbox / "bin" / name).symlink_to(path)
        clients = start_clients(page, todo, sandbox, environment)
        (sandbox / "page.sh").write_text(UNTIL_STOPPED + IN_BACKGROUND + script_of(todo))
        reached, log = sandbox / "reached", sandbox / "log"
        command = f"exec bash {shlex.quote(str(sandbox / 'page.sh'))} 9>{shlex.quote(str(reached))}"
        with log.open("wb") as output:
            shell = subprocess.Popen(["bash", "-c", command], cwd=sandbox / "project", env=environment,
                                     stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
            try:
                code = shell.wait(LIMIT)
            except subprocess.TimeoutExpired:
                code = f"none after {LIMIT} s"
        # Also what the page left in the background.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        subprocess.run([environment["SANDBOX"] + "/bin/steadfast", "goal", "pause", "--all"], env=environment,
                       cwd=sandbox / "project", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        for client in clients:
            client.stdin.close()
            client.wait()
        steps = reached.read_text().split()
        passed = int(steps[-1]) if steps else 0
        if passed == len(todo):
            return passed, None
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
        return passed, f"{todo[passed].place}: exit code {code}\n{todo[passed].text}--\n{tail}"


def main(wanted):
    for needed in ("git", "bash", "jq", "sqlite3"):
        if not shutil.which(needed):
            sys.exit(f"{needed} is needed; ./test installs it")
    work, left_out, skipped = [], [], []
    for page in pages():
        name = str(page.relative_to(REPOSITORY))
        if not is_run(page) or wanted and name not in wanted:
            continue
        todo = []
        for block in blocks(page):
            counts = block.language in RUN or named_file(block)
            why = ELSEWHERE.get(name) or (block.mark if block.mark not in ENDLESS else "")
            if counts and why:
                left_out.append(f"{block.place}: {why}")
            elif counts:
                todo.append(block)
        if not any(block.language in RUN for block in todo):
            continue
        if why := missing(page):
            skipped.append(f"{name}, {len(todo)} blocks: {why}")
        else:
            work.append((page, todo))
    passed, failed = 0, 0
    # Most of their time is waiting.
    with ThreadPoolExecutor(3) as pool:
        for (page, todo), (done, problem) in zip(work, pool.map(lambda one: run_page(*one), work)):
            name = page.relative_to(REPOSITORY)
            if problem:
                print(f"!! {name} failed and is run again:\n{problem}", flush=True)
                done, problem = run_page(page, todo)
                if not problem:
                    print(f"!! FLAKY {name}: failed, then passed; see CONTRIBUTING.md")
            passed += done
            failed += len(todo) - done
            print(f"{'ok  ' if problem is None else 'FAIL'} {name}: {done} of {len(todo)} blocks", flush=True)
            if problem:
                print(problem, flush=True)
    for line in left_out:
        print(f"not run {line}")
    for line in skipped:
        print(f"!! SKIPPED {line}")
    print(f"{passed} passed, {failed} failed")
    if failed or not passed and not skipped:
        return 1
    return 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
