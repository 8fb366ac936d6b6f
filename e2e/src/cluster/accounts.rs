//! Service accounts outside of pods: what a program may do is what its account may do.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::configuration::{Layout, kubeconfig};

/// Longer than any test.
const GOOD_FOR_SECONDS: i64 = 24 * 3600;

/// Why there are no credentials for a service account.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("the API server gives no token for {account}")]
    Token { account: String, source: kube::Error },
    #[error("cannot write the kubeconfig of {account}")]
    Write { account: String, source: std::io::Error },
}

/// Writes a kubeconfig by which a program is a service account and nobody else.
pub(super) async fn write_kubeconfig(
    client: &Client,
    layout: &Layout,
    namespace: &str,
    name: &str,
) -> Result<PathBuf, AccountError> {
    let account = format!("system:serviceaccount:{namespace}:{name}");
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(GOOD_FOR_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let made = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let failed = |source| AccountError::Token { account: account.clone(), source };
    let token = made.map_err(failed)?.status.and_then(|status| status.token);
    let path = layout.kubeconfig(&account);
    fs::write(&path, kubeconfig(layout, &account, &json!({ "token": token })))
        .map_err(|source| AccountError::Write { account: account.clone(), source })?;
    Ok(path)
}
