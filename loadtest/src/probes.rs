//! Asks a gateway whether it is ready while it has much to do: a probe that goes unanswered is how a healthy
//! gateway is killed.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::requests::get;

const BETWEEN: Duration = Duration::from_millis(200);

/// What a kubelet waits at most, unless it is told otherwise.
const LIMIT: Duration = Duration::from_secs(1);

/// How probes were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probed {
    pub(crate) asked: usize,
    /// In time, and with yes.
    pub(crate) answered: usize,
    pub(crate) slowest: Duration,
}

impl Probed {
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.slowest = self.slowest.max(other.slowest);
    }

    fn count(&mut self, took: Option<Duration>) {
        self.asked += 1;
        self.answered += usize::from(took.is_some());
        self.slowest = self.slowest.max(took.unwrap_or(LIMIT));
    }
}

/// Asks `admin` again and again for as long as `work` takes.
pub(crate) async fn during<Done>(
    work: impl Future<Output = Result<Done>>,
    admin: &str,
) -> Result<(Done, Probed)> {
    let mut probed = Probed::default();
    let asking = async {
        loop {
            let begun = Instant::now();
            let answer = tokio::time::timeout(LIMIT, get(admin, "/readyz")).await;
            probed.count(matches!(answer, Ok(Ok(_))).then(|| begun.elapsed()));
            tokio::time::sleep(BETWEEN).await;
        }
    };
    let done = tokio::select! {
        done = work => done?,
        () = asking => anyhow::bail!("asking has no end"),
    };
    Ok((done, probed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_without_an_answer_counts_as_the_longest_wait() {
        let mut probed = Probed::default();
        probed.count(Some(Duration::from_millis(3)));
        probed.count(None);
        let mut sum = Probed { asked: 1, answered: 1, slowest: Duration::ZERO };
        sum.add(probed);
        assert_eq!(sum, Probed { asked: 3, answered: 2, slowest: LIMIT });
    }
}
