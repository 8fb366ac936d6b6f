//! What one engine has of ComfyUI: the queue, what was made of it, the pictures, and who listens. Jobs run
//! one after the other, as in ComfyUI.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use super::job::Job;
use crate::engine::Engine;

/// Prompts and pictures that are remembered; the oldest go first.
const MOST_KEPT: usize = 100;
/// Messages that a slow listener may be behind; after that it misses some.
const MOST_BEHIND: usize = 4_096;

/// Where a picture lies, as `/view` names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    pub(super) filename: String,
    #[serde(default)]
    pub(super) subfolder: String,
    #[serde(default = "output", rename = "type")]
    pub(super) kind: String,
}

fn output() -> String {
    "output".to_owned()
}

impl Place {
    /// An uploaded picture as nodes name it: perhaps with a folder before its name.
    pub(super) fn input(image: &str) -> Self {
        let (subfolder, filename) = image.rsplit_once('/').unwrap_or(("", image));
        Self {
            filename: filename.to_owned(),
            subfolder: subfolder.to_owned(),
            kind: "input".into(),
        }
    }
}

/// Something that listeners are told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The one client whom it is for; everybody where there is none.
    pub(super) client: Option<String>,
    pub(super) message: Message,
}

#[derive(Clone, Debug)]
pub(super) enum Message {
    Text(String),
    Picture(Bytes),
}

/// What can be forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shelf {
    Queue,
    History,
}

/// What was queued, painted and uploaded.
#[derive(Debug)]
pub(crate) struct Studio {
    state: Mutex<State>,
    told: broadcast::Sender<Told>,
}

#[derive(Debug, Default)]
struct State {
    jobs: u64,
    waiting: VecDeque<Arc<Job>>,
    running: Option<Arc<Job>>,
    /// Whether somebody takes from the queue.
    is_worked: bool,
    history: VecDeque<(String, Value)>,
    pictures: VecDeque<(Place, Bytes)>,
    /// How many pictures have had each beginning of a name, the last used last: what is forgotten has no picture left.
    named: VecDeque<(String, u64)>,
}

impl Default for Studio {
    fn default() -> Self {
        Self { state: Mutex::default(), told: broadcast::Sender::new(MOST_BEHIND) }
    }
}

fn keep<T>(kept: &mut VecDeque<T>, thing: T) {
    if kept.len() >= MOST_KEPT {
        kept.pop_front();
    }
    kept.push_back(thing);
}

impl Studio {
    /// Adds a job at the end of the queue, and says its number.
    pub(super) fn queue(&self, mut job: Job) -> u64 {
        let number = {
            let mut state = self.state.lock();
            let number = state.jobs;
            state.jobs += 1;
            job.number = number;
            state.waiting.push_back(Arc::new(job));
            number
        };
        self.tell_state();
        number
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Told> {
        self.told.subscribe()
    }

    /// Tells a client, if it listens; without one nobody.
    pub(super) fn tell(&self, client: Option<&str>, message: Message) {
        if let Some(client) = client {
            // Nobody listening is no fault.
            let _ = self.told.send(Told { client: Some(client.to_owned()), message });
        }
    }

    fn tell_state(&self) {
        let message = json!({"type": "status", "data": {"status": self.state()}});
        let _ = self.told.send(Told { client: None, message: Message::Text(message.to_string()) });
    }

    /// The node that runs now, if it is for this client.
    pub(super) fn node_for(&self, client: &str) -> Option<String> {
        let state = self.state.lock();
        let running = state.running.as_ref()?;
        (running.client.as_deref() == Some(client)).then(|| running.node.lock().clone())?
    }

    /// How much is left to do.
    pub(super) fn state(&self) -> Value {
        let state = self.state.lock();
        let left = state.waiting.len() + usize::from(state.running.is_some());
        json!({"exec_info": {"queue_remaining": left}})
    }

    pub(super) fn queued(&self) -> Value {
        let state = self.state.lock();
        let shown = |job: &Arc<Job>| job.shown();
        let running: Vec<Value> = state.running.iter().map(shown).collect();
        let waiting: Vec<Value> = state.waiting.iter().map(shown).collect();
        json!({"queue_running": running, "queue_pending": waiting})
    }

    pub(super) fn interrupt(&self) {
        if let Some(job) = &self.state.lock().running {
            job.interrupted.cancel();
        }
    }

    pub(super) fn forget(&self, shelf: Shelf, all: bool, ids: &[String]) {
        let gone = |id: &String| all || ids.contains(id);
        let mut state = self.state.lock();
        match shelf {
            Shelf::Queue => state.waiting.retain(|job| !gone(&job.id)),
            Shelf::History => state.history.retain(|(id, _)| !gone(id)),
        }
    }

    pub(super) fn history(&self) -> Value {
        Value::Object(self.state.lock().history.iter().cloned().collect::<Map<_, _>>())
    }

    pub(super) fn history_of(&self, id: &str) -> Option<Value> {
        let state = self.state.lock();
        state.history.iter().find(|(known, _)| known == id).map(|(_, told)| told.clone())
    }

    pub(super) fn holds(&self, place: &Place) -> bool {
        self.picture(place).is_some()
    }

    pub(super) fn picture(&self, place: &Place) -> Option<Bytes> {
        let state = self.state.lock();
        let found = state.pictures.iter().rev().find(|(known, _)| known == place);
        found.map(|(_, picture)| picture.clone())
    }

    /// Where the next picture goes whose name begins with `prefix`: they are counted, by every engine for itself.
    pub(super) fn next_place(&self, prefix: &str, kind: &str) -> Place {
        let (subfolder, beginning) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let mut state = self.state.lock();
        let known = state.named.iter().position(|(known, _)| known == prefix);
        let before = known.and_then(|known| state.named.remove(known));
        let count = before.map_or(1, |(_, count)| count + 1);
        keep(&mut state.named, (prefix.to_owned(), count));
        let filename = format!("{beginning}_{count:05}_.png");
        Place { filename, subfolder: subfolder.to_owned(), kind: kind.to_owned() }
    }

    pub(super) fn keep_picture(&self, place: Place, picture: Bytes) {
        keep(&mut self.state.lock().pictures, (place, picture));
    }

    /// Keeps an upload, and says where. Another picture of the same name stays, unless it is to be
    /// replaced.
    pub(super) fn keep_upload(&self, mut place: Place, picture: Bytes, replaces: bool) -> Place {
        let (stem, ending) = match place.filename.rsplit_once('.') {
            Some((stem, ending)) => (stem.to_owned(), format!(".{ending}")),
            None => (place.filename.clone(), String::new()),
        };
        let mut number = 0;
        while !replaces && self.picture(&place).is_some_and(|known| known != picture) {
            number += 1;
            place.filename = format!("{stem} ({number}){ending}");
        }
        self.keep_picture(place.clone(), picture);
        place
    }

    /// The next job, which counts as running from now on.
    fn next(&self) -> Option<Arc<Job>> {
        let mut state = self.state.lock();
        let job = state.waiting.pop_front();
        state.is_worked = job.is_some();
        state.running.clone_from(&job);
        job
    }

    fn done(&self, job: &Job, told: Value) {
        {
            let mut state = self.state.lock();
            state.running = None;
            keep(&mut state.history, (job.id.clone(), told));
        }
        self.tell_state();
    }
}

/// Sees to it that somebody works through the queue until it is empty.
pub(super) fn work(engine: &Arc<Engine>) {
    if std::mem::replace(&mut engine.studio.state.lock().is_worked, true) {
        return;
    }
    let worker = Arc::clone(engine);
    engine.aside.spawn(async move {
        let working = async {
            while let Some(job) = worker.studio.next() {
                let told = job.run(&worker).await;
                worker.studio.done(&job, told);
                job.tell(&worker.studio, "executing", json!({"node": null}));
            }
        };
        tokio::select! {
            () = worker.stop.cancelled() => {}
            () = working => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_of_a_known_name_and_another_content_gets_a_new_name() {
        let studio = Studio::default();
        let keep = |content: &'static [u8], replaces| {
            let place = Place::input("pets/cat.png");
            studio.keep_upload(place, Bytes::from_static(content), replaces).filename
        };
        assert_eq!(keep(b"one", false), "cat.png");
        assert_eq!(keep(b"one", false), "cat.png", "the same again");
        assert_eq!(keep(b"two", false), "cat (1).png");
        assert_eq!(keep(b"three", true), "cat.png");
        assert_eq!(studio.picture(&Place::input("pets/cat.png")).as_deref(), Some(&b"three"[..]));
        assert!(!studio.holds(&Place::input("cat.png")), "another folder");
    }

    #[test]
    fn pictures_are_counted_by_the_beginnings_of_their_names() {
        let studio = Studio::default();
        let name = |prefix: &str| studio.next_place(prefix, "output").filename;
        assert_eq!(name("ComfyUI"), "ComfyUI_00001_.png");
        assert_eq!(name("ComfyUI"), "ComfyUI_00002_.png");
        assert_eq!(name("pets/cat"), "cat_00001_.png");
        assert_eq!(studio.next_place("pets/cat", "output").subfolder, "pets");
        for number in 0..2 * MOST_KEPT {
            assert_eq!(name(&format!("x{number}")), format!("x{number}_00001_.png"));
            assert_eq!(name("ComfyUI"), format!("ComfyUI_{:05}_.png", number + 3));
        }
        assert_eq!(studio.state.lock().named.len(), MOST_KEPT, "the oldest are forgotten");
    }

    #[test]
    fn the_oldest_pictures_are_forgotten() {
        let studio = Studio::default();
        for number in 0..=MOST_KEPT {
            studio.keep_picture(Place::input(&format!("{number}.png")), Bytes::new());
        }
        assert!(!studio.holds(&Place::input("0.png")));
        assert!(studio.holds(&Place::input("1.png")));
    }
}
