//! Sends what a conversation asks for. Follows no redirect by itself, and adds a token or a login only where
//! the request says so: to whom it may go is core's decision (SEC-07).

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::sources::download::{Authorization, Head, Request};
use flexinfer_core::sources::oci::Login;
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Response, header};

use crate::failures::chain;
use crate::settings::FetchSettings;

/// More than any repository's list of files takes.
const LARGEST_LIST: usize = 64 << 20;

pub(crate) struct Client {
    http: reqwest::Client,
    hub_token: Option<HeaderValue>,
    login: Option<HeaderValue>,
}

impl Client {
    /// `direct` is for what stays on this machine: no proxy may come between.
    pub(crate) fn new(
        settings: &FetchSettings,
        login: Option<&Login>,
        direct: bool,
    ) -> Result<Self, Failure> {
        // An error means that the process has chosen a provider already, which serves as well.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder();
        let builder = if direct { builder.no_proxy() } else { builder };
        let http = builder
            .user_agent(concat!("flexinfer/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.silence_timeout)
            // A file takes a connection of its own, instead of sharing one window with the others.
            .http1_only()
            .build()
            .map_err(|error| {
                let why = chain(&error);
                let message = format!(
                    "no secure connection is possible here: {why}; install the system's \
                     certificates (the package ca-certificates)"
                );
                Failure::new(Reason::DownloadFailed, message)
            })?;
        let wrong = |_| {
            let message = "HF_TOKEN has characters that no token has; set it to the token alone";
            Failure::new(Reason::InvalidConfig, message)
        };
        let hub_token = settings.token.as_ref();
        let hub_token = hub_token.map(|token| bearer(token.as_str()).map_err(wrong)).transpose()?;
        // Its letters are those of base64.
        let login = login.and_then(|login| secret(&login.basic()).ok());
        Ok(Self { http, hub_token, login })
    }

    /// Sends `request`. The error is one line for people, without the address: it may be signed.
    pub(crate) async fn send(&self, request: &Request) -> Result<Response, String> {
        let mut builder = self.http.get(request.url.clone());
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        let authorization = match &request.authorization {
            Authorization::Nothing => None,
            Authorization::HubToken => self.hub_token.clone(),
            Authorization::Login => self.login.clone(),
            Authorization::Session(session) => bearer(session.as_str()).ok(),
        };
        if let Some(authorization) = authorization {
            builder = builder.header(header::AUTHORIZATION, authorization);
        }
        builder.send().await.map_err(|error| {
            let host = request.url.origin().ascii_serialization();
            format!("{host}: {}", chain(&error.without_url()))
        })
    }

    /// Sends `request` and reads the whole answer, which is a list of files.
    pub(crate) async fn ask(&self, request: &Request) -> Result<(Head, Vec<u8>), String> {
        let response = self.send(request).await?;
        let head = head_of(&response);
        Ok((head, whole(response).await?))
    }
}

/// The whole of a body that is no file.
pub(crate) async fn whole(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(part) = chunk(&mut response).await? {
        if body.len() + part.len() > LARGEST_LIST {
            return Err("the list of files is longer than any".to_owned());
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// The next part of a body.
pub(crate) async fn chunk(response: &mut Response) -> Result<Option<bytes::Bytes>, String> {
    response.chunk().await.map_err(|error| chain(&error.without_url()))
}

pub(crate) fn head_of(response: &Response) -> Head {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    Head {
        status: response.status().as_u16(),
        headers: headers.map(|(name, value)| (name.to_string(), text(value))).collect(),
    }
}

fn bearer(token: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    secret(&format!("Bearer {token}"))
}

/// A value that nobody prints.
fn secret(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}
