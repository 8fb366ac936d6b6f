//! A gateway for a test to talk to: on free ports, over a folder of models, its output kept until it fails.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::program;

/// How long a gateway may take to start and, after it, to stop. Far above what it needs: a bound, not a
/// measure.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running gateway, stopped when dropped.
pub(crate) struct Gateway {
    child: Child,
    /// Where the gateway keeps what is its own, and its output beside that.
    folder: PathBuf,
    url: String,
    admin: String,
}

impl Gateway {
    /// Starts `binary local models` and waits until it says that it is ready.
    pub(crate) fn start(binary: &Path, models: &Path, flags: &[&str]) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("flexinfer-xtask-{}", std::process::id()));
        fs::create_dir_all(&folder).context("cannot create a folder for the gateway")?;
        let output = File::create(folder.join("gateway.log")).context("cannot keep its output")?;
        let (address, admin) = (free_address()?, free_address()?);
        let mut command = program::named(binary);
        command.arg("local").arg(models).args(["--listen", &address, "--admin-listen", &admin]);
        command.arg("--data-dir").arg(&folder).args(flags);
        command.stdout(output.try_clone()?).stderr(output);
        let child =
            command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let scheme = if flags.contains(&"--tls-cert") { "https" } else { "http" };
        let url = format!("{scheme}://{address}");
        let mut gateway = Self { child, folder, url, admin };
        gateway.wait_until_ready()?;
        Ok(gateway)
    }

    /// Tells a test where the gateway is.
    pub(crate) fn tell(&self, test: &mut Command) {
        test.env("FLEXINFER_URL", &self.url);
        test.env("FLEXINFER_ADMIN_URL", format!("http://{}", self.admin));
        test.env("FLEXINFER_PID", self.child.id().to_string());
    }

    /// What it printed, for a test that failed.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.folder.join("gateway.log")).unwrap_or_default()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                bail!("the gateway ended with {status}:\n{}", self.output());
            }
            if answers(&self.admin) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the gateway did not become ready in {PATIENCE:?}:\n{}", self.output())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Asked first, so that its engines end by its own care; a second signal is not needed in order.
        let pid = self.child.id().to_string();
        drop(Command::new("kill").args(["-TERM", &pid]).status());
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// An address that was free a moment ago: the system gives each asker another port for a good while.
fn free_address() -> Result<String> {
    let socket = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(socket.local_addr()?.to_string())
}

fn answers(admin: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut socket = TcpStream::connect(admin)?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        socket.write_all(b"GET /readyz HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        socket.read_exact(&mut head)?;
        Ok(&head == b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}
