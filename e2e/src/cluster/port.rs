//! A port for a program that must be told one: reserved, so that no neighbour is given it meanwhile.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of 127.0.0.1 that the system gives to nobody else while this lives. The socket is bound and never
/// listens; a program that shares ports (SO_REUSEPORT) can listen on it.
pub(super) struct ReservedPort {
    number: u16,
    _socket: Socket,
}

impl ReservedPort {
    pub(super) fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let address = socket.local_addr()?.as_socket();
        let number = address.ok_or(io::ErrorKind::AddrNotAvailable)?.port();
        Ok(Self { number, _socket: socket })
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_is_free_for_one_who_shares_and_for_nobody_else() {
        let port = ReservedPort::new().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
        assert!(TcpListener::bind(address).is_err(), "somebody else got the port");
        let sharing = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        sharing.set_reuse_port(true).unwrap();
        sharing.bind(&address.into()).unwrap();
        sharing.listen(1).unwrap();
        std::net::TcpStream::connect(address).unwrap();
    }
}
