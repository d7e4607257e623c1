//! Network namespaces: a worker behind a cable of its own, which a test can pull out.

use std::process::Command;

/// A namespace with one cable to this machine. Removed with it.
pub(crate) struct Net {
    pub(crate) name: String,
    cable: String,
    /// The address of this machine, seen from inside.
    pub(crate) server: String,
}

fn ip(arguments: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("ip");
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.output().is_ok_and(|output| output.status.success())
}

impl Net {
    /// `None` where namespaces are not allowed.
    pub(crate) fn new(number: u32) -> Option<Self> {
        let process = std::process::id();
        let (name, cable, peer) =
            (format!("sf{process}n{number}"), format!("sf{process}a{number}"), format!("sf{process}b{number}"));
        // A network of four addresses for each cable, apart from those of other tests.
        let (third, fourth) = (process % 250, number * 4);
        let (server, own) = (format!("10.213.{third}.{}", fourth + 1), format!("10.213.{third}.{}", fourth + 2));
        if !ip(&["netns", "add", &name]) {
            return None;
        }
        let net = Self { name: name.clone(), cable: cable.clone(), server: server.clone() };
        let is_made = ip(&["link", "add", &cable, "type", "veth", "peer", "name", &peer])
            && ip(&["link", "set", &peer, "netns", &name])
            && ip(&["addr", "add", &format!("{server}/30"), "dev", &cable])
            && ip(&["link", "set", &cable, "up"])
            && ip(&["-n", &name, "addr", "add", &format!("{own}/30"), "dev", &peer])
            && ip(&["-n", &name, "link", "set", &peer, "up"])
            && ip(&["-n", &name, "link", "set", "lo", "up"]);
        is_made.then_some(net)
    }

    /// Pulls the cable out, or plugs it in again.
    pub(crate) fn connect(&self, is_connected: bool) {
        assert!(ip(&["link", "set", &self.cable, if is_connected { "up" } else { "down" }]));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        ip(&["link", "del", &self.cable]);
        ip(&["netns", "del", &self.name]);
    }
}
