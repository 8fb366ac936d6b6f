//! Free ports for engines.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

use parking_lot::Mutex;

/// Ports given out lately are not given out again: their engines may not have bound them yet.
const REMEMBERED: usize = 128;
/// How many ports the system may offer that were given out lately before one is taken anyway.
const OFFERS: usize = 16;

/// Gives out ports that nobody listens on. Somebody else may still take one before its engine does;
/// the engine then fails to bind it and is started again with another.
#[derive(Default)]
pub(super) struct Ports {
    recent: Mutex<VecDeque<u16>>,
}

impl Ports {
    /// A port of 127.0.0.1 that is free now.
    pub(super) fn free(&self) -> io::Result<u16> {
        let mut recent = self.recent.lock();
        // Held until the choice is made, so that the system offers a different one each time.
        let mut offered = Vec::new();
        let port = loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            offered.push(listener);
            if !recent.contains(&port) || offered.len() == OFFERS {
                break port;
            }
        };
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(port);
        Ok(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_given_out_twice_in_a_row() {
        let ports = Ports::default();
        let mut given: Vec<_> = (0..50).map(|_| ports.free().unwrap()).collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 50);
    }
}
