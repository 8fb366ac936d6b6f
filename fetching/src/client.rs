//! Sends what a conversation asks for. Follows no redirect by itself, and adds the token only where
//! the request says so: to whom it may go is core's decision (SEC-07).

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::sources::download::{Head, Request};
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Response, header};

use crate::failures::chain;
use crate::settings::FetchSettings;

/// More than any repository's list of files takes.
const LARGEST_LIST: usize = 64 << 20;

pub(crate) struct Client {
    http: reqwest::Client,
    authorization: Option<HeaderValue>,
}

impl Client {
    pub(crate) fn new(settings: &FetchSettings) -> Result<Self, Failure> {
        // An error means that the process has chosen a provider already, which serves as well.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder();
        let builder = if settings.hub.is_local() { builder.no_proxy() } else { builder };
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
        let authorization = match &settings.token {
            Some(token) => Some(bearer(token.as_str())?),
            None => None,
        };
        Ok(Self { http, authorization })
    }

    /// Sends `request`. The error is one line for people, without the address: it may be signed.
    pub(crate) async fn send(&self, request: &Request) -> Result<Response, String> {
        let mut builder = self.http.get(request.url.clone());
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some(authorization) = self.authorization.as_ref().filter(|_| request.with_token) {
            builder = builder.header(header::AUTHORIZATION, authorization.clone());
        }
        builder.send().await.map_err(|error| {
            let host = request.url.origin().ascii_serialization();
            format!("{host}: {}", chain(&error.without_url()))
        })
    }

    /// Sends `request` and reads the whole answer, which is a list of files.
    pub(crate) async fn ask(&self, request: &Request) -> Result<(Head, Vec<u8>), String> {
        let mut response = self.send(request).await?;
        let head = head_of(&response);
        let mut body = Vec::new();
        while let Some(part) = chunk(&mut response).await? {
            if body.len() + part.len() > LARGEST_LIST {
                return Err("the list of files is longer than any".to_owned());
            }
            body.extend_from_slice(&part);
        }
        Ok((head, body))
    }
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

fn bearer(token: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
        let message = "HF_TOKEN has characters that no token has; set it to the token alone";
        Failure::new(Reason::InvalidConfig, message)
    })?;
    value.set_sensitive(true);
    Ok(value)
}
