//! More schedulers beside the cluster's own, each for the pods that name it: how an extender is tried out
//! without being in the way of other tests.

use std::fs;

use serde_json::{Value, json};

use super::process::Process;
use super::{Cluster, StartError, configuration, programs};

/// A running kube-scheduler of its own name. Ends when it is dropped.
pub struct Scheduler {
    _process: Process,
}

impl Cluster {
    /// Starts a real kube-scheduler for pods whose `schedulerName` is `name`, which asks `extenders`: a list
    /// of `Extender` of `kubescheduler.config.k8s.io/v1`.
    pub fn add_scheduler(&self, name: &str, extenders: &Value) -> Result<Scheduler, StartError> {
        let folder = self.layout.folder().join(name);
        let written = |act: &str| format!("{act} for the scheduler {name}");
        fs::create_dir_all(&folder).map_err(StartError::prepare(written("make a folder")))?;
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": { "kubeconfig": self.layout.kubeconfig(configuration::ADMIN) },
            "leaderElection": { "leaderElect": false },
            // A pod that was refused is tried again soon: tests do not like to wait.
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "profiles": [{ "schedulerName": name }],
            "extenders": extenders,
        });
        let file = folder.join("configuration.json");
        fs::write(&file, configuration.to_string())
            .map_err(StartError::prepare(written("write a file")))?;
        let arguments = [format!("--config={}", file.display()), "--secure-port=0".to_owned()];
        let programs = programs::folder()?;
        let process = Process::start(&programs, "kube-scheduler", &arguments, &folder)?;
        Ok(Scheduler { _process: process })
    }
}
