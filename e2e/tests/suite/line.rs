//! A way to the API server that the test can cut.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A relay of connections between a program and the API server.
pub(crate) struct Line {
    address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Line {
    /// A line to where `kubeconfig` leads, and the same configuration by way of it, in `folder`.
    pub(crate) async fn to(kubeconfig: &Path, folder: &Path) -> (Self, PathBuf) {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let server = text.split("https://").nth(1).unwrap();
        let server: String =
            server.chars().take_while(|letter| !"\"'\n ,/".contains(*letter)).collect();
        let line = Self::relay(server.replace("localhost", "127.0.0.1").parse().unwrap()).await;
        let path = folder.join("kubeconfig");
        std::fs::write(&path, text.replace(&server, &line.address.to_string())).unwrap();
        (line, path)
    }

    async fn relay(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut state = state.clone();
                tokio::spawn(async move {
                    if !*state.borrow() {
                        return;
                    }
                    let Ok(mut server) = TcpStream::connect(server).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = state.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { address, open }
    }

    /// Ends every connection, and lets none through.
    pub(crate) fn cut(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.open.send_replace(true);
    }
}
