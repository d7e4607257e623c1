"""The client of the tests: a process of its own that starts hooks and tool servers as the real clients do.

`client.py serve SOCKET` starts what it is asked for until its stdin closes. A request is a JSON object after its length in
four bytes; what follows is the input of the process. The answers are its process id and, when it has ended, its exit code.
`client.py one PROGRAM ARGUMENT...` starts one program, with its own stdin as the input.
"""
import json, os, socket, struct, subprocess, sys, threading

starting = threading.Lock()


def three_pipes():
    """Codex opens the pipes of a child in a row; here, other threads may come between."""
    while True:
        pipes = [os.pipe() for _ in range(3)]
        first, second, third = (os.fstat(reader).st_ino for reader, _ in pipes)
        if second == first + 1 and third == first + 2 and first % 1024 not in (0, 1023):
            return pipes
        for pipe in pipes:
            for end in pipe:
                os.close(end)


def start(argv, env, cwd, stdin):
    """Returns the process, a function that writes to it, one that ends its input, and what to read from."""
    with starting:
        pipes = three_pipes()
        ours, theirs = socket.socketpair()
        given = {"socket": theirs.fileno(), "pipe": pipes[0][0], "null": subprocess.DEVNULL}[stdin]
        # As the clients do: a session of its own.
        child = subprocess.Popen(argv, env=env, cwd=cwd, stdin=given, stdout=pipes[1][1], stderr=pipes[2][1],
                                 start_new_session=True)
    theirs.close()
    for end in (pipes[0][0], pipes[1][1], pipes[2][1]):
        os.close(end)
    write_end = os.fdopen(pipes[0][1], "wb", buffering=0)
    if stdin != "pipe":
        write_end.close()
    write = write_end.write if stdin == "pipe" else ours.sendall
    def end():
        write_end.close()
        ours.close()
    return child, write, end, [pipes[1][0], pipes[2][0]]


def copy(source, target):
    while True:
        data = os.read(source, 65536)
        if not data:
            break
        try:
            while data:
                data = data[os.write(target, data):]
        except BrokenPipeError:
            pass
    os.close(source)
    os.close(target)


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def serve_one(connection):
    (length,) = struct.unpack("<I", read_exactly(connection, 4))
    request = json.loads(read_exactly(connection, length))
    targets = [os.open(f"/proc/{request['pid']}/fd/{number}", os.O_WRONLY) for number in request["output"]]
    child, write, end, sources = start(request["argv"], request["env"], request["cwd"], request["stdin"])
    copies = [threading.Thread(target=copy, args=pair) for pair in zip(sources, targets)]
    for thread in copies:
        thread.start()
    connection.sendall(struct.pack("<i", child.pid))

    def finish():
        code = child.wait()
        # A process in the background may keep the output open.
        for thread in copies:
            thread.join(0.2)
        try:
            connection.sendall(struct.pack("<i", code))
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    threading.Thread(target=finish).start()
    try:
        while data := connection.recv(65536):
            write(data)
    except OSError:
        pass
    end()


def serve(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def one(argv):
    child, write, end, sources = start(argv, None, None, "socket")
    copies = [threading.Thread(target=copy, args=(source, number + 1)) for number, source in enumerate(sources)]
    for thread in copies:
        thread.start()
    try:
        while data := os.read(0, 65536):
            write(data)
    except OSError:
        pass
    end()
    code = child.wait()
    for thread in copies:
        thread.join()
    os._exit(code)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    one(sys.argv[2:])
