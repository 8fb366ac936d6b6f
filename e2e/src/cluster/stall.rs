//! etcd that does not answer for a while, as before a disk that hangs.

use rustix::process::Signal;

use super::Cluster;

/// etcd does nothing while this lives.
pub struct Stall<'a> {
    cluster: &'a Cluster,
}

impl Cluster {
    /// Makes etcd stand still until the answer is dropped. Nothing is lost; every read of it and every write waits.
    pub fn stall_etcd(&self) -> Stall<'_> {
        self.signal_etcd(Signal::STOP);
        Stall { cluster: self }
    }

    fn signal_etcd(&self, signal: Signal) {
        for process in self.processes.iter().filter(|process| process.is("etcd")) {
            process.signal(signal);
        }
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.cluster.signal_etcd(Signal::CONT);
    }
}
