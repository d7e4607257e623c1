# Writes what a process that a client started can see of itself: `probe.py FILE LABEL`.
import json, os, socket, struct, sys

def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None

def stat(pid):
    with open(f"/proc/{pid}/stat") as f:
        before, after = f.read().rsplit(") ", 1)
    fields = after.split()
    return {"pid": pid, "name": before.split(" (", 1)[1], "parent": int(fields[1]), "group": int(fields[2]),
            "session": int(fields[3]), "tty": int(fields[4]), "flags": fields[6], "cminflt": int(fields[8])}

def peer():
    try:
        s = socket.socket(fileno=os.dup(0))
        return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    except OSError:
        return None

above, pid = [], os.getppid()
while pid > 1 and len(above) < 8:
    above.append(stat(pid))
    pid = above[-1]["parent"]
held = []
for process in above[:3]:
    d = f"/proc/{process['pid']}/fd"
    links = [link(f"{d}/{n}") for n in os.listdir(d)]
    held.append([link(f"/proc/self/fd/{n}") in links for n in range(3)])
facts = {"label": sys.argv[2], "own": stat(os.getpid()), "above": above, "peer": peer(), "held": held,
         "fds": {n: link(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")},
         "env": sorted(n for n in os.environ if "CLAUDE" in n or "CODEX" in n or "STEADFAST" in n),
         "status": [l.strip() for l in open("/proc/self/status") if l.startswith(("Sig", "NoNew", "Seccomp", "Shd"))]}
with open(sys.argv[1], "a") as out:
    out.write(json.dumps(facts) + "\n")
