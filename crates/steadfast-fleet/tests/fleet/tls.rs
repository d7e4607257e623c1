//! Real TLS: a server certificate of a private authority, and clients that have to show one of theirs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::world::{World, skipped};

/// A proxy that ends TLS in front of the server.
struct Proxy {
    child: Child,
    port: String,
}

impl Proxy {
    fn start(world: &World, folder: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/tls_proxy.py");
        let files = ["ca.pem", "server.pem", "server.key"].map(|name| folder.join(name));
        let mut child = Command::new("python3")
            .arg(script)
            .arg(world.server.port.to_string())
            .args(files)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn openssl(folder: &Path, arguments: &[&str]) -> bool {
    Command::new("openssl").args(arguments).current_dir(folder).output().is_ok_and(|output| output.status.success())
}

/// An authority, another one, a server certificate and a client certificate.
fn certificates(folder: &Path) -> bool {
    let authority = |name: &str| {
        let (key, pem, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
        let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", &key, "-out", &pem];
        openssl(folder, &[&request[..], &["-subj", &subject, "-addext", "basicConstraints=critical,CA:TRUE"]].concat())
    };
    let signed = |name: &str, more: &str| {
        let (key, request, pem) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        std::fs::write(folder.join("extensions"), more).unwrap();
        openssl(folder, &["req", "-newkey", "rsa:2048", "-nodes", "-keyout", &key, "-out", &request, "-subj", &subject])
            && openssl(
                folder,
                &[
                    "x509",
                    "-req",
                    "-in",
                    &request,
                    "-CA",
                    "ca.pem",
                    "-CAkey",
                    "ca.key",
                    "-CAcreateserial",
                    "-days",
                    "2",
                    "-extfile",
                    "extensions",
                    "-out",
                    &pem,
                ],
            )
    };
    authority("ca")
        && authority("other")
        && signed("server", "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        && signed("client", "extendedKeyUsage=clientAuth\nbasicConstraints=CA:FALSE\n")
}

#[test]
fn certificates_that_fit_connect_and_others_are_clear_errors() {
    let Some(world) = World::new() else { return };
    let folder = world.dir.path().join("certificates");
    std::fs::create_dir(&folder).unwrap();
    if !certificates(&folder) {
        skipped("openssl makes no certificates here");
        return;
    }
    let proxy = Proxy::start(&world, &folder);
    let file = |name: &str| folder.join(name).display().to_string();
    let list = |ca: &str, with_client: bool| {
        let mut command = world.command(&["fleet", "list"]);
        command
            .env("TEMPORAL_ADDRESS", format!("127.0.0.1:{}", proxy.port))
            .env("TEMPORAL_TLS", "true")
            .env("TEMPORAL_TLS_SERVER_CA_CERT_PATH", file(ca));
        if with_client {
            command
                .env("TEMPORAL_TLS_CLIENT_CERT_PATH", file("client.pem"))
                .env("TEMPORAL_TLS_CLIENT_KEY_PATH", file("client.key"));
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = list("ca.pem", true);
    assert_eq!(code, Some(0), "{said}");
    for (ca, with_client, word) in
        [("other.pem", true, "TEMPORAL_TLS_SERVER_CA_CERT_PATH"), ("ca.pem", false, "TEMPORAL_TLS_CLIENT_CERT_PATH")]
    {
        let (code, said) = list(ca, with_client);
        assert_eq!(code, Some(4), "{ca}: {said}");
        assert_eq!(said.lines().count(), 2, "one line and a hint: {said}");
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
}
