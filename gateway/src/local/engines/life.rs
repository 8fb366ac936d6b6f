//! The life of one instance, from the order to start it until nothing of it is left.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexinfer_core::activation::{Failure, Progress, Reason, Report};
use flexinfer_core::backends::{Backend, Exit, Launch, ModelPlace, Placement, Platform};
use flexinfer_core::effective::{Spoken, key_of_engine};
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_crds::Model;
use tokio::sync::watch;

use super::loading::Loading;
use super::output::Output;
use super::supervised::{Order, StartError, Supervised};
use super::{Shared, external, failures, file_name, gpus, memory, programs, weights};
use crate::adapters;
use crate::secrets::Secret;
use crate::way::Way;

/// How often an engine is started again at once because somebody was faster to take its port.
const ATTEMPTS_AT_A_PORT: u32 = 3;
/// How long an engine that did not become ready may take to end.
const GRACE_OF_FAILED: Duration = Duration::from_secs(2);
/// The last lines among which the cause of an engine's end is looked for.
const TELLING_LINES: usize = 60;

/// One instance of a model.
pub(super) struct Life {
    pub(super) shared: Arc<Shared>,
    pub(super) instance: InstanceId,
    model: Arc<Model>,
    output: Arc<Output>,
    id: ModelId,
    stopped: watch::Receiver<Option<Duration>>,
}

/// Why an instance is over.
pub(super) enum End {
    Asked,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Life {
    pub(super) fn new(
        shared: Arc<Shared>,
        instance: InstanceId,
        model: Arc<Model>,
        stopped: watch::Receiver<Option<Duration>>,
    ) -> Self {
        let id = ModelId::new(
            model.metadata.namespace.as_deref().unwrap_or("default"),
            model.metadata.name.as_deref().unwrap_or_default(),
        );
        let output = shared.output(&id);
        Self { shared, instance, model, output, id, stopped }
    }

    /// Lives it. The report is the last one about this instance.
    pub(super) async fn run(self) -> Report {
        let instance = self.instance;
        let Err(end) = self.live().await;
        match end {
            End::Asked => Report::Gone { instance },
            End::Failed(failure) => Report::Failed { instance, failure },
        }
    }

    async fn live(&self) -> Result<Infallible, End> {
        let backend = Backend::of(&*self.model)
            .map_err(|error| Failure::new(Reason::InvalidConfig, error.to_string()))?;
        if !backend.starts_engine() {
            return tokio::select! {
                _ = self.asked_to_stop() => Err(End::Asked),
                end = external::follow(self, backend) => end,
            };
        }
        let model = tokio::select! {
            biased;
            _ = self.asked_to_stop() => return Err(End::Asked),
            found = self.find_weights(backend) => found?,
        };
        let mut attempts = 1;
        loop {
            let Err(end) = self.attempt(backend, &model).await;
            match end {
                End::Failed(Failure { reason: Reason::PortTaken, .. })
                    if attempts < ATTEMPTS_AT_A_PORT =>
                {
                    attempts += 1;
                }
                end => return Err(end),
            }
        }
    }

    /// A program that is missing is told before gigabytes are downloaded for it.
    fn program_is_there(&self, backend: Backend) -> Result<(), Failure> {
        let model = ModelPlace::Path("weights.gguf".to_owned());
        let Ok(launch) = backend.launch(&*self.model, &self.placement(0, model)) else {
            return Ok(());
        };
        if programs::missing(&launch.program, &self.shared.settings.models) {
            return Err(failures::no_program(backend, &launch.program));
        }
        Ok(())
    }

    async fn find_weights(&self, backend: Backend) -> Result<ModelPlace, Failure> {
        let spec = &self.model.spec;
        let program = || self.program_is_there(backend);
        weights::find(&self.shared.settings, backend, spec, program, |step| self.progress(step))
            .await
    }

    /// The key called `name` as one of this model's.
    pub(super) fn secret<'a>(&'a self, name: Option<&'a str>) -> Option<Secret<'a>> {
        name.map(|name| Secret { namespace: &self.id.namespace, name })
    }

    /// Starts the engine once and follows it to its end.
    async fn attempt(&self, backend: Backend, model: &ModelPlace) -> Result<Infallible, End> {
        let launch = self.launch(backend, model.clone())?;
        let kills_before = memory::kills();
        let mut engine = self.start(backend, &launch).await?;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), launch.port);
        let was_ready = AtomicBool::new(false);
        let (spoken, secret) = (Spoken::to(&self.model), key_of_engine(&self.model));
        let secrets = &self.shared.settings.secrets;
        let serving = async {
            let loading = Loading {
                backend,
                way: Way::new(address, &spoken, self.secret(secret.as_deref()), secrets),
                launch: &launch,
                output: &self.output,
                progress: |step| self.progress(step),
            };
            loading.finish().await?;
            was_ready.store(true, Ordering::Relaxed);
            self.report(Report::Ready { instance: self.instance, address });
            std::future::pending::<Result<Infallible, Failure>>().await
        };
        // An engine that has ended is never ready, whoever answers at its port.
        let outcome = tokio::select! {
            biased;
            grace = self.asked_to_stop() => Outcome::Stop(grace),
            ending = engine.ended() => Outcome::Ended(ending),
            Err(failure) = serving => Outcome::Unready(failure),
        };
        match outcome {
            Outcome::Stop(grace) => {
                self.stop(&mut engine, grace).await;
                Err(End::Asked)
            }
            Outcome::Ended(ending) => {
                let exit = Exit {
                    code: ending.code,
                    signal: ending.signal,
                    was_ready: was_ready.load(Ordering::Relaxed),
                    memory_ran_out: memory::kills() > kills_before,
                };
                let lines = self.output.last_lines();
                let telling = lines.get(lines.len().saturating_sub(TELLING_LINES)..);
                Err(End::Failed(backend.explain(exit, telling.unwrap_or_default())))
            }
            Outcome::Unready(failure) => {
                engine.stop(GRACE_OF_FAILED).await;
                Err(End::Failed(failure))
            }
        }
    }

    /// Ends the engine; an order that comes meanwhile can shorten the grace.
    async fn stop(&self, engine: &mut Supervised, mut grace: Duration) {
        let mut stopped = self.stopped.clone();
        stopped.mark_unchanged();
        loop {
            tokio::select! {
                _ = engine.stop(grace) => return,
                Ok(()) = stopped.changed() => {
                    grace = stopped.borrow_and_update().unwrap_or(grace);
                }
            }
        }
    }

    fn launch(&self, backend: Backend, model: ModelPlace) -> Result<Launch, Failure> {
        let port = self.shared.ports.free().map_err(|error| failures::no_port(&error))?;
        let folder = self.folder();
        let adapters = self.shared.adapters_of(&self.id);
        let placement = Placement {
            adapters: u32::try_from(adapters.len()).unwrap_or(u32::MAX),
            adapter_rank: adapters::rank(&adapters),
            ..self.placement(port, model)
        };
        let mut launch = backend
            .launch(&*self.model, &placement)
            .map_err(|error| failures::not_launched(&error))?;
        let folder_of_models = &self.shared.settings.models;
        launch.after_start.extend(adapters::calls(backend, &adapters, folder_of_models));
        let write = |path: &Path, contents: &str| {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, contents)
        };
        fs::create_dir_all(&folder).map_err(|error| failures::not_written(&folder, &error))?;
        for file in &launch.files {
            let path = folder.join(&file.path);
            write(&path, &file.contents).map_err(|error| failures::not_written(&path, &error))?;
        }
        Ok(launch)
    }

    fn placement(&self, port: u16, model: ModelPlace) -> Placement {
        Placement {
            platform: Platform::Process,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port,
            model,
            gpu: gpus::asked_by(&self.model.spec, Path::new("/dev")),
            adapters: 0,
            adapter_rank: None,
            simulator_program: Some(self.shared.settings.program.to_string_lossy().into_owned()),
            data_dir: self.folder().to_string_lossy().into_owned(),
            store: None,
        }
    }

    async fn start(&self, backend: Backend, launch: &Launch) -> Result<Supervised, Failure> {
        let command = std::iter::once(launch.program.as_str())
            .chain(launch.args.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ");
        self.output.begin_run(&command);
        tracing::debug!(model = %self.id, instance = %self.instance, command, "starting an engine");
        let order = Order {
            supervisor: self.shared.settings.program.clone(),
            program: OsString::from(&launch.program),
            args: launch.args.iter().map(OsString::from).collect(),
            env: launch.env.clone(),
            folder: self.shared.settings.models.clone(),
        };
        let started = Supervised::start(&order, Arc::clone(&self.output)).await;
        started.map_err(|error: StartError| failures::not_started(backend, &launch.program, &error))
    }

    /// A folder of this model's own, for the files its engine needs.
    fn folder(&self) -> PathBuf {
        self.shared.settings.own.engines.join(file_name(&self.id))
    }

    /// Resolves, to the grace, once the instance shall end.
    pub(super) async fn asked_to_stop(&self) -> Duration {
        let mut stopped = self.stopped.clone();
        let order = stopped.wait_for(Option::is_some).await.map(|order| *order);
        // Nobody is left who could ask: as good as asked.
        order.ok().flatten().unwrap_or(Duration::ZERO)
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    pub(super) fn progress(&self, progress: Progress) {
        self.report(Report::Progress { instance: self.instance, progress });
    }

    pub(super) fn report(&self, report: Report) {
        (self.shared.sink)(report);
    }
}

enum Outcome {
    Stop(Duration),
    Ended(super::supervised::Ending),
    Unready(Failure),
}
