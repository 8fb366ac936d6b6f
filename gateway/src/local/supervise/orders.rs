//! What the gateway asks of a supervisor: lines on its standard input, and that pipe's closing. A
//! signal to the supervisor itself asks for the same thing.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The line that asks a supervisor to end its engine within `grace`.
pub(crate) fn stop_order(grace: Duration) -> String {
    format!("stop {}\n", grace.as_millis())
}

/// The orders as they come in.
pub(super) struct Orders {
    graces: mpsc::UnboundedReceiver<Duration>,
    closed: bool,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Orders {
    pub(super) fn listen() -> io::Result<Self> {
        let (sender, graces) = mpsc::unbounded_channel();
        // Not joined: a blocked read cannot be interrupted, and ends with the process.
        thread::Builder::new().name("orders".to_owned()).spawn(move || read(&sender))?;
        Ok(Self {
            graces,
            closed: false,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The grace that the next order leaves the engine; `None` when it names none: the gateway is
    /// gone, or a signal came.
    pub(super) async fn next(&mut self) -> Option<Duration> {
        tokio::select! {
            grace = self.graces.recv(), if !self.closed => {
                self.closed = grace.is_none();
                grace
            }
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
            _ = self.hang_up.recv() => None,
        }
    }

    /// Whether the gateway's end of the pipe is closed.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }
}

/// Reads orders until the pipe is closed; dropping the sender tells that it is.
fn read(sender: &mpsc::UnboundedSender<Duration>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if let Some(grace) = grace_in(&line) {
            let _ = sender.send(grace);
        }
    }
}

fn grace_in(line: &str) -> Option<Duration> {
    line.strip_prefix("stop ")?.trim().parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = stop_order(Duration::from_millis(1500));
        assert_eq!(grace_in(order.trim_end()), Some(Duration::from_millis(1500)));
        assert_eq!(grace_in("stop soon"), None);
        assert_eq!(grace_in("start"), None);
    }
}
