//! One readable line for each thing that happens to a model.

use std::collections::HashMap;
use std::time::Duration;

use flexinfer_core::activation::{Progress, Substage};
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::Notice;
use owo_colors::OwoColorize;

use super::{counted, short};

/// Progress is told again when it has come this many percent further.
const STEP: u64 = 25;
/// A longer message of an engine is cut, so that its line fits a terminal: the log has all of it.
const LONGEST_MESSAGE: usize = 48;

/// Makes the lines, and remembers how far each load has been told.
pub struct Lines {
    colored: bool,
    told: HashMap<InstanceId, Step>,
}

/// How far a load was told; messages without a number are told whenever they change.
#[derive(PartialEq, Eq)]
enum Step {
    Percent(u64),
    Message(String),
}

impl Lines {
    /// Lines with colours, or plain ones for files and pipes.
    pub fn new(colored: bool) -> Self {
        Self { colored, told: HashMap::new() }
    }

    /// What was decided about a model, or learnt of it.
    pub fn notice(&self, model: &ModelId, notice: &Notice) -> String {
        let name = self.name(&short(model));
        match notice {
            Notice::Waking { waiting: 0, .. } => format!("{name}: waking"),
            Notice::Waking { waiting, .. } => {
                format!("{name}: waking, {} waiting", counted(*waiting, "request", "requests"))
            }
            Notice::Swapping { leaving } => {
                format!("{} → {name}: swapping", self.name(&short(leaving)))
            }
            Notice::Draining { in_flight: 0 } => format!("{name}: leaving"),
            Notice::Draining { in_flight } => {
                format!("{name}: finishing {}", counted(*in_flight, "request", "requests"))
            }
            Notice::CutOff { in_flight } => self.bad(&format!(
                "{name}: cut off {} at its drain limit",
                counted(*in_flight, "request", "requests")
            )),
            Notice::Ready { took, waiting, .. } => {
                let ready = self.good("ready");
                let took = seconds(*took);
                if *waiting == 0 {
                    return format!("{name}: {ready} in {took}");
                }
                let requests = counted(*waiting, "request goes", "requests go");
                format!("{name}: {ready} in {took}, {requests} out")
            }
            Notice::Sleeping { idle } => {
                format!("{name}: going to sleep after {} without requests", seconds(*idle))
            }
            Notice::Replaced => format!("{name}: stopping, its file has changed or is gone"),
            Notice::Failed { failure, retry_in, retrying } => {
                let failed = self.bad("failed");
                let next = match (retrying, retry_in.is_zero()) {
                    (_, true) => "it can be started again at once".to_owned(),
                    (true, _) => format!("trying again in {}", seconds(*retry_in)),
                    (false, _) => format!("can be tried again in {}", seconds(*retry_in)),
                };
                format!("{name}: {failed}: {failure}; {next}")
            }
            Notice::Gone => format!("{name}: stopped"),
        }
    }

    /// A Model has come into the folder, or has gone from it.
    pub fn listed(&self, model: &ModelId, there: bool) -> String {
        let name = self.name(&short(model));
        if there {
            format!("{name}: served from now on")
        } else {
            format!("{name}: no longer served")
        }
    }

    /// How far a load has come; nothing where that says little more than the line before.
    pub fn progress(
        &mut self,
        model: &ModelId,
        instance: InstanceId,
        progress: &Progress,
    ) -> Option<String> {
        let percent = progress.done.and_then(|(done, all)| (done * 100).checked_div(all));
        let step = match (percent, progress.substage) {
            (Some(percent), _) => Step::Percent(percent / STEP),
            // An engine says a hundred things while it loads; its log keeps them.
            (None, Substage::LoadingWeights) => return None,
            (None, _) => Step::Message(progress.message.clone()),
        };
        if self.told.get(&instance) == Some(&step) {
            return None;
        }
        self.told.insert(instance, step);
        let name = self.name(&short(model));
        let part = match progress.substage {
            Substage::Downloading => "downloading",
            Substage::ImagePulling => "pulling its image",
            Substage::LoadingWeights => "loading",
            Substage::Compiling => "compiling",
            Substage::HealthCheckPending => "starting",
        };
        Some(match percent {
            Some(percent) => format!("{name}: {part} {percent} %"),
            None => format!("{name}: {part}: {}", cut(&progress.message)),
        })
    }

    /// Forgets a load that has ended.
    pub fn forget(&mut self, instance: InstanceId) {
        self.told.remove(&instance);
    }

    fn name(&self, name: &str) -> String {
        if self.colored { name.bold().to_string() } else { name.to_owned() }
    }

    fn good(&self, text: &str) -> String {
        if self.colored { text.green().to_string() } else { text.to_owned() }
    }

    fn bad(&self, text: &str) -> String {
        if self.colored { text.red().to_string() } else { text.to_owned() }
    }
}

/// `2.1 s`, `250 ms`, `5 min`.
fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        1_000..60_000 => {
            let text = format!("{:.1}", duration.as_secs_f64());
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        _ if duration.as_secs().is_multiple_of(60) => format!("{} min", duration.as_secs() / 60),
        _ => format!("{} min {} s", duration.as_secs() / 60, duration.as_secs() % 60),
    }
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or(message)),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_core::activation::{Failure, Reason};

    use super::*;

    fn qwen() -> ModelId {
        ModelId::new("default", "qwen")
    }

    #[test]
    fn a_swap_reads_as_a_story() {
        let lines = Lines::new(false);
        let llama = ModelId::new("default", "llama");
        let failure = Failure::new(Reason::DiedWhileLoading, "llamacpp ended with exit code 1");
        let story = [
            lines.notice(&qwen(), &Notice::Swapping { leaving: llama.clone() }),
            lines.notice(&llama, &Notice::Draining { in_flight: 2 }),
            lines.notice(&llama, &Notice::Gone),
            lines.notice(&qwen(), &Notice::Waking { waiting: 1, swap: None }),
            lines.notice(
                &qwen(),
                &Notice::Ready {
                    took: Duration::from_millis(2_140),
                    waiting: 1,
                    stages: Vec::new(),
                },
            ),
            lines.notice(&qwen(), &Notice::Sleeping { idle: Duration::from_secs(120) }),
            lines.notice(
                &ModelId::new("lab", "phi"),
                &Notice::Failed { failure, retry_in: Duration::from_secs(5), retrying: false },
            ),
        ];
        insta::assert_snapshot!(story.join("\n"), @r"
        llama → qwen: swapping
        llama: finishing 2 requests
        llama: stopped
        qwen: waking, 1 request waiting
        qwen: ready in 2.1 s, 1 request goes out
        qwen: going to sleep after 2 min without requests
        lab/phi: failed: DiedWhileLoading: llamacpp ended with exit code 1; can be tried again in 5 s
        ");
    }

    #[test]
    fn progress_is_told_in_steps() {
        let mut lines = Lines::new(false);
        let told: Vec<_> = (0..=100)
            .filter_map(|percent| {
                let done = Some((percent, 100));
                let message = String::new();
                let substage = Substage::LoadingWeights;
                lines.progress(&qwen(), InstanceId(1), &Progress { substage, done, message })
            })
            .collect();
        assert_eq!(
            told,
            [
                "qwen: loading 0 %",
                "qwen: loading 25 %",
                "qwen: loading 50 %",
                "qwen: loading 75 %",
                "qwen: loading 100 %"
            ]
        );
    }

    #[test]
    fn messages_are_told_when_they_change() {
        let mut lines = Lines::new(false);
        let mut say = |message: &str| {
            let progress = Progress {
                substage: Substage::Downloading,
                done: None,
                message: message.to_owned(),
            };
            lines.progress(&qwen(), InstanceId(1), &progress)
        };
        assert_eq!(say("pulling manifest").unwrap(), "qwen: downloading: pulling manifest");
        assert_eq!(say("pulling manifest"), None);
        assert!(say("verifying digest").is_some());
    }
}
