//! An upgrade in place: a gateway hands its listening sockets to its successor, which accepts from them before
//! this one ceases to. The sockets themselves never close, so that no connection finds nobody.
//!
//! They meet at a Unix socket that only one gateway owns at a time. The successor takes the sockets over,
//! gets ready, says so, and only then does its predecessor stop accepting. One that dies on the way leaves
//! everything as it was.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::task::spawn_blocking;
use tracing::{info, warn};

/// The sockets that are handed over: for requests and for the admin port.
const SOCKETS: usize = 2;
/// How long a predecessor may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a successor says once it accepts.
const READY: u8 = 1;

/// What a gateway got from its predecessor.
pub struct Inherited {
    /// For requests.
    pub requests: TcpListener,
    /// For the admin port.
    pub admin: TcpListener,
    /// How many gateways were here before.
    pub generation: u8,
    /// Where to say that this one accepts now.
    predecessor: UnixStream,
}

impl Inherited {
    /// Asks the gateway that waits at `path`; `None` where none does.
    pub fn ask(path: &Path) -> io::Result<Option<Self>> {
        is_free(path)?;
        let predecessor = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        predecessor.set_read_timeout(Some(PATIENCE))?;
        let mut generation = [0];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let mut bytes = [IoSliceMut::new(&mut generation)];
        recvmsg(&predecessor, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let sockets: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
                _ => None,
            })
            .flatten()
            .collect();
        let [requests, admin] = <[OwnedFd; SOCKETS]>::try_from(sockets).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "what waits there hands over no sockets")
        })?;
        let [before] = generation;
        let generation = before.saturating_add(1);
        Ok(Some(Self { requests: requests.into(), admin: admin.into(), generation, predecessor }))
    }

    /// This gateway accepts now: its predecessor may cease to.
    pub fn release(mut self) -> io::Result<()> {
        self.predecessor.write_all(&[READY])
    }
}

/// What a gateway hands to its successor.
pub struct Estate {
    path: PathBuf,
    sockets: [OwnedFd; SOCKETS],
    generation: u8,
}

impl Estate {
    /// The sockets `requests` and `admin`, to be had at `path`.
    pub fn new(
        path: &Path,
        requests: &TcpListener,
        admin: &TcpListener,
        generation: u8,
    ) -> io::Result<Self> {
        let sockets = [requests.as_fd().try_clone_to_owned()?, admin.as_fd().try_clone_to_owned()?];
        Ok(Self { path: path.to_owned(), sockets, generation })
    }

    /// Waits for a successor at the path, and returns when it accepts. Called once this gateway accepts
    /// itself and its predecessor is released: the path is its own from now on.
    pub async fn wait(self) -> io::Result<()> {
        is_free(&self.path)?;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&self.path)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let estate = std::sync::Arc::new(self);
        loop {
            let (successor, _) = listener.accept().await?;
            let successor = successor.into_std()?;
            successor.set_nonblocking(false)?;
            info!("a successor asks for the sockets");
            let estate = std::sync::Arc::clone(&estate);
            let handed = spawn_blocking(move || estate.hand_to(successor)).await;
            match handed {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => warn!(%error, "the successor did not get ready; serving on"),
                Err(error) => warn!(%error, "the successor was not served; serving on"),
            }
        }
    }

    fn hand_to(&self, mut successor: UnixStream) -> io::Result<()> {
        let [requests, admin] = &self.sockets;
        let sockets = [requests.as_fd(), admin.as_fd()];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        control.push(SendAncillaryMessage::ScmRights(&sockets));
        sendmsg(&successor, &[IoSlice::new(&[self.generation])], &mut control, SendFlags::empty())?;
        // However long it takes to get ready; an end of the stream is one that died.
        let mut word = [0];
        successor.read_exact(&mut word)
    }
}

/// Whether nothing is at `path` but, at most, a socket. It is removed later, and must not be somebody's file.
fn is_free(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} is there and is no socket; name another path", path.display()),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound() -> TcpListener {
        super::super::bind(([127, 0, 0, 1], 0).into()).expect("a port")
    }

    #[tokio::test]
    async fn a_successor_accepts_at_the_same_addresses_and_releases_its_predecessor() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handover");
        assert!(Inherited::ask(&path).expect("asked").is_none(), "nobody was here before");
        let (requests, admin) = (bound(), bound());
        let estate = Estate::new(&path, &requests, &admin, 0).expect("an estate");
        let waiting = tokio::spawn(estate.wait());
        let asked = path.clone();
        let inherited = spawn_blocking(move || {
            loop {
                if let Some(inherited) = Inherited::ask(&asked).expect("asked") {
                    return inherited;
                }
            }
        });
        let inherited = inherited.await.expect("inherited");
        assert_eq!(inherited.requests.local_addr().ok(), requests.local_addr().ok());
        assert_eq!(inherited.admin.local_addr().ok(), admin.local_addr().ok());
        assert_eq!(inherited.generation, 1);
        assert!(!waiting.is_finished());
        inherited.release().expect("released");
        waiting.await.expect("waited").expect("handed over");
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("theirs");
        std::fs::write(&path, "not ours").expect("written");
        assert!(Inherited::ask(&path).is_err_and(|error| error.to_string().contains("no socket")));
        let (requests, admin) = (bound(), bound());
        let estate = Estate::new(&path, &requests, &admin, 0).expect("an estate");
        estate.wait().await.expect_err("the path is taken");
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("not ours"));
    }

    #[tokio::test]
    async fn a_successor_that_dies_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handover");
        let (requests, admin) = (bound(), bound());
        let estate = Estate::new(&path, &requests, &admin, 0).expect("an estate");
        let waiting = tokio::spawn(estate.wait());
        for _ in 0..2 {
            let asked = path.clone();
            let dying = spawn_blocking(move || {
                loop {
                    if let Some(inherited) = Inherited::ask(&asked).expect("asked") {
                        return inherited;
                    }
                }
            });
            drop(dying.await.expect("inherited"));
        }
        assert!(!waiting.is_finished());
    }
}
