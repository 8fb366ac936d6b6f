//! What a test wants otherwise of the control plane's programs.

/// Flags beside those that every cluster has. Of a flag that is given twice the later one counts.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Of kube-apiserver.
    pub api_server: Vec<String>,
    /// Of kube-controller-manager.
    pub controller_manager: Vec<String>,
    /// Of kube-scheduler.
    pub scheduler: Vec<String>,
}
