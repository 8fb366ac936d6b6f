//! One cluster: etcd, API server, controller manager and scheduler, with certificates, ports and folders of
//! their own. Any number of them live side by side; each is gone with its `Cluster`.

mod accounts;
mod audit;
mod certificates;
mod configuration;
mod error;
mod flags;
mod port;
mod process;
mod programs;
mod scheduler;
mod stall;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::attendants::Attendants;
use crate::{Helm, Kubectl, network};

pub use accounts::AccountError;
pub use audit::Write;
pub use error::StartError;
pub use flags::Flags;
pub use scheduler::Scheduler;
pub use stall::Stall;

use configuration::Layout;
use port::ReservedPort;
use process::Process;

/// How long a part may take to become ready on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(50);

/// A running cluster without nodes. Its processes end when it is dropped, or when the test's process ends.
pub struct Cluster {
    /// Leave before there is nobody to ask.
    attendants: Option<Attendants>,
    /// The latest first, so that none is ended after one that it needs.
    processes: Vec<Process>,
    config: Config,
    layout: Layout,
    _folder: TempDir,
    _port: ReservedPort,
}

impl Cluster {
    /// Starts all parts and waits until objects are served and controllers act on them.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(&Flags::default()).await
    }

    /// The same with further flags for its programs.
    pub async fn start_with(flags: &Flags) -> Result<Self, StartError> {
        let folder = TempDir::with_prefix("flexinfer-e2e-")
            .map_err(StartError::prepare("create a folder for the cluster"))?;
        let port = ReservedPort::new().map_err(StartError::prepare("reserve a port"))?;
        if network::is_our_own() {
            network::ensure_bridge()?;
        }
        let layout = Layout::new(folder.path(), port.number());
        configuration::write(&layout)?;
        let kubeconfig = Kubeconfig::read_from(layout.kubeconfig(configuration::ADMIN))?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut cluster = Self {
            attendants: None,
            processes: Vec::new(),
            config,
            layout,
            _folder: folder,
            _port: port,
        };
        cluster.launch(flags).await?;
        let volumes = cluster.layout.folder().join("volumes");
        let attendants = Attendants::start(&cluster.config, &volumes);
        let act = "start a thread for storage and Services";
        cluster.attendants = Some(attendants.map_err(StartError::prepare(act))?);
        Ok(cluster)
    }

    async fn launch(&mut self, flags: &Flags) -> Result<(), StartError> {
        let programs = programs::folder()?;
        self.add(&programs, "etcd", &self.layout.etcd())?;
        let api_server = [self.layout.api_server(), flags.api_server.clone()].concat();
        self.add(&programs, "kube-apiserver", &api_server)?;
        let client = self.client()?;
        self.wait_for("the API server", || api_server_is_ready(&client)).await?;
        // These give up early on an API server that does not answer.
        let manager = [self.layout.controller_manager(), flags.controller_manager.clone()].concat();
        self.add(&programs, "kube-controller-manager", &manager)?;
        let scheduler = [self.layout.scheduler(), flags.scheduler.clone()].concat();
        self.add(&programs, "kube-scheduler", &scheduler)?;
        self.wait_for("the controller manager", || controllers_act(&client)).await
    }

    fn add(
        &mut self,
        programs: &Path,
        name: &'static str,
        arguments: &[String],
    ) -> Result<(), StartError> {
        let process = Process::start(programs, name, arguments, self.layout.folder())?;
        self.processes.insert(0, process);
        Ok(())
    }

    /// A client with every right. Each async runtime needs one of its own, hence each test does.
    pub fn client(&self) -> Result<Client, kube::Error> {
        Client::try_from(self.config.clone())
    }

    /// The real kubectl with every right.
    pub fn kubectl(&self) -> Kubectl {
        self.kubectl_by(&self.kubeconfig())
    }

    /// The real Helm with every right.
    pub fn helm(&self) -> Helm {
        Helm::new(&self.kubeconfig(), &self.layout.folder().join("helm"))
    }

    /// The configuration by which a client reaches this cluster with every right.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig(configuration::ADMIN)
    }

    /// A configuration by which a client is a service account, with its rights and no others.
    pub async fn kubeconfig_of(
        &self,
        namespace: &str,
        account: &str,
    ) -> Result<PathBuf, AccountError> {
        let client = self
            .client()
            .map_err(|source| AccountError::Token { account: account.to_owned(), source })?;
        accounts::write_kubeconfig(&client, &self.layout, namespace, account).await
    }

    /// The real kubectl by a configuration of this cluster.
    pub fn kubectl_by(&self, kubeconfig: &Path) -> Kubectl {
        Kubectl::new(kubeconfig, &self.layout.folder().join("kubectl-cache"))
    }

    /// Where the API server listens, on every address of this machine.
    pub(crate) fn port(&self) -> u16 {
        self.layout.port()
    }

    /// The folder with the log of each part, gone with the cluster.
    pub fn folder(&self) -> &Path {
        self.layout.folder()
    }

    /// Every request that changed something so far, by anyone, oldest first. A request is noted when it is
    /// answered, so one's own latest may be missing for a moment.
    pub fn writes(&self) -> io::Result<Vec<Write>> {
        audit::writes(&self.layout.audit_log())
    }

    async fn wait_for<F>(
        &mut self,
        awaited: &'static str,
        mut ready: impl FnMut() -> F,
    ) -> Result<(), StartError>
    where
        F: Future<Output = Result<(), kube::Error>>,
    {
        let begun = Instant::now();
        loop {
            let Err(source) = ready().await else { return Ok(()) };
            for process in &mut self.processes {
                process.check_alive()?;
            }
            if begun.elapsed() > PATIENCE {
                return Err(StartError::Late { awaited, patience: PATIENCE, source });
            }
            sleep(POLL).await;
        }
    }
}

async fn api_server_is_ready(client: &Client) -> Result<(), kube::Error> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

/// Pods are refused until their namespace has a service account, which a controller makes.
async fn controllers_act(client: &Client) -> Result<(), kube::Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.get("default").await.map(drop)
}
