"""Ends TLS in front of a plain Temporal server, and wants a client certificate: PORT CA CERT KEY. Prints its own port."""
import socket
import ssl
import sys
import threading

port, ca, cert, key = int(sys.argv[1]), *sys.argv[2:5]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
context.load_verify_locations(ca)
context.verify_mode = ssl.CERT_REQUIRED
context.set_alpn_protocols(["h2"])


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(plain):
    try:
        secure = context.wrap_socket(plain, server_side=True)
    except OSError:
        plain.close()
        return
    server = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=copy, args=(server, secure), daemon=True).start()
    copy(secure, server)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
