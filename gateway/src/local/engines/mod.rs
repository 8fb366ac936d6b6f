//! Engines: one process, and whatever it starts, per running instance of a model. `core` decides which
//! instance starts and stops; here it is done, and what becomes of it is reported.
//!
//! Guardrail: every instance that was started ends in exactly one report of `Failed` or `Gone`, and
//! only after nothing of its processes is left.

mod calls;
mod external;
mod failures;
mod gpus;
mod life;
mod loading;
mod memory;
mod output;
mod own;
mod ports;
mod programs;
mod supervised;
mod weights;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::activation::Report;
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_crds::{LoRAAdapter, Model};
use flexinfer_fetching::FetchSettings;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use life::Life;
use output::Output;
use ports::Ports;

use crate::secrets::Secrets;
pub use own::Own;

/// What every engine on this machine is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's own program, which has the subcommands `supervise` and `simulate`.
    pub program: PathBuf,
    /// Where downloads are kept. Absolute.
    pub data: PathBuf,
    /// Where logs and the engines' own files are kept.
    pub own: Own,
    /// The folder of the Models' files, from which `file://./…` counts. Absolute.
    pub models: PathBuf,
    /// Folders that stand in for persistent volume claims, by the claim's name.
    pub claims: BTreeMap<String, PathBuf>,
    /// The hub that models are downloaded from, and how.
    pub fetching: FetchSettings,
    /// The keys that engines want of their clients.
    pub secrets: Arc<Secrets>,
}

/// Takes the reports. Called from the engines' own tasks; must not block.
pub type Sink = Arc<dyn Fn(Report) + Send + Sync>;

/// All engines of this process.
pub struct Engines {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    runtime: Handle,
}

struct Shared {
    settings: Settings,
    sink: Sink,
    ports: Ports,
    outputs: Mutex<HashMap<ModelId, Arc<Output>>>,
    running: Mutex<HashMap<InstanceId, StopOrder>>,
    adapters: Mutex<Adapters>,
}

/// LoRA adapters by the model that they are added to.
type Adapters = HashMap<ModelId, Vec<Arc<LoRAAdapter>>>;

/// Set once an instance shall end, to how long it may take.
type StopOrder = watch::Sender<Option<Duration>>;

impl Engines {
    /// Engines that are run on `runtime` and reported to `sink`.
    pub fn new(settings: Settings, sink: Sink, runtime: Handle) -> Self {
        let shared = Shared {
            settings,
            sink,
            ports: Ports::default(),
            outputs: Mutex::default(),
            running: Mutex::default(),
            adapters: Mutex::default(),
        };
        Self { shared: Arc::new(shared), tasks: TaskTracker::new(), runtime }
    }

    /// Starts an engine for `model` and returns at once; what becomes of it is reported. An instance
    /// that was started before is left as it is.
    pub fn start(&self, instance: InstanceId, model: Arc<Model>) {
        let (stop, stopped) = watch::channel(None);
        {
            let mut running = self.shared.running.lock();
            if running.contains_key(&instance) {
                return;
            }
            running.insert(instance, stop);
        }
        let shared = Arc::clone(&self.shared);
        let life = Life::new(Arc::clone(&shared), instance, model, stopped);
        self.tasks.spawn_on(
            async move {
                let report = life.run().await;
                shared.running.lock().remove(&instance);
                (shared.sink)(report);
            },
            &self.runtime,
        );
    }

    /// The adapters that engines are started with from now on.
    pub fn know_adapters(&self, adapters: HashMap<ModelId, Vec<Arc<LoRAAdapter>>>) {
        *self.shared.adapters.lock() = adapters;
    }

    /// Asks an instance to end, by SIGTERM and, after `grace`, by SIGKILL; returns at once. An
    /// instance that has ended is left in peace.
    pub fn stop(&self, instance: InstanceId, grace: Duration) {
        if let Some(stop) = self.shared.running.lock().get(&instance) {
            order_stop(stop, grace);
        }
    }

    /// The last lines that the model's engines said, oldest first.
    pub fn log_lines(&self, model: &ModelId) -> Vec<String> {
        self.shared.outputs.lock().get(model).map_or_else(Vec::new, |output| output.last_lines())
    }

    /// Ends every engine and waits until nothing is left of any, somewhat longer than `grace` at
    /// most. What is left even then is ended by its supervisor once this process is gone.
    pub async fn stop_all(&self, grace: Duration) {
        /// For the kernel to take apart processes that were killed, and their memory.
        const AFTER_THE_KILL: Duration = Duration::from_secs(5);

        for stop in self.shared.running.lock().values() {
            order_stop(stop, grace);
        }
        self.tasks.close();
        if timeout(grace + AFTER_THE_KILL, self.tasks.wait()).await.is_err() {
            let left = self.shared.running.lock().len();
            tracing::warn!(engines = left, "engines are still ending; their supervisors see to it");
        }
    }
}

/// An order can make the grace shorter than the one before, never longer.
fn order_stop(stop: &StopOrder, grace: Duration) {
    stop.send_if_modified(|order| {
        let shorter = order.is_none_or(|before| grace < before);
        if shorter {
            *order = Some(grace);
        }
        shorter
    });
}

impl Shared {
    fn adapters_of(&self, model: &ModelId) -> Vec<Arc<LoRAAdapter>> {
        self.adapters.lock().get(model).cloned().unwrap_or_default()
    }

    fn output(&self, model: &ModelId) -> Arc<Output> {
        let mut outputs = self.outputs.lock();
        let output = outputs
            .entry(model.clone())
            .or_insert_with(|| Output::new(self.settings.own.logs.join(file_name(model) + ".log")));
        Arc::clone(output)
    }
}

/// A name for the files of `model`; two models never have the same one, since no name has an
/// underscore in it.
fn file_name(model: &ModelId) -> String {
    if &*model.namespace == "default" {
        model.name.to_string()
    } else {
        format!("{}_{}", model.namespace, model.name)
    }
}
