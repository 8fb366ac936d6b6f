//! `oci://host[:port]/name[:tag][@sha256:digest]`, also written `oras://`: an artifact in a registry.
//!
//! The host has to be named, since no registry is everybody's. With a digest the tag is only for people.

use std::fmt;

use crate::sources::BadSource;

pub(in crate::sources) const EXAMPLE: &str = "oci://host[:port]/name[:tag][@sha256:digest]";

/// The longest name that registries take.
const LONGEST_NAME: usize = 255;

/// The longest tag.
const LONGEST_TAG: usize = 128;

/// Docker's own registry, as people write it.
pub(super) const DOCKER_HUB: &str = "docker.io";

/// An artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// `host` or `host:port`, in lower case.
    pub registry: String,
    /// The repository's name within the registry.
    pub repository: String,
    /// The tag as written; `None` is `latest`.
    pub tag: Option<String>,
    /// `sha256:` and 64 hexadecimal digits: exactly this manifest.
    pub digest: Option<String>,
}

impl Reference {
    /// Reads what stands behind `oci://`.
    pub fn parse(rest: &str) -> Result<Self, BadSource> {
        let (registry, name) = rest.split_once('/').ok_or(BadSource::Missing {
            part: "the repository's name behind the registry",
            example: EXAMPLE,
        })?;
        let registry = host(registry)?;
        let (name, digest) = match name.split_once('@') {
            Some((name, digest)) => (name, Some(sha256(digest)?)),
            None => (name, None),
        };
        let after_folders = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name.get(after_folders..).and_then(|last| last.split_once(':')) {
            Some((last, tag)) => {
                let length = after_folders + last.len();
                (name.get(..length).unwrap_or(name), Some(checked_tag(tag)?))
            }
            None => (name, None),
        };
        let repository = repository(name)?;
        let of_docker = registry == DOCKER_HUB && !repository.contains('/');
        let repository = if of_docker { format!("library/{repository}") } else { repository };
        Ok(Self { registry, repository, tag, digest })
    }

    /// What the manifest is asked for by: the digest, else the tag, else `latest`.
    pub fn revision(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }

    /// Whether it may be another artifact tomorrow without anybody having said so here.
    pub fn is_loose(&self) -> bool {
        self.tag.is_none() && self.digest.is_none()
    }
}

fn bad(part: &'static str, text: &str, problem: &'static str) -> BadSource {
    BadSource::BadPart { part, text: text.to_owned(), problem, example: EXAMPLE }
}

fn host(text: &str) -> Result<String, BadSource> {
    const PART: &str = "the registry's host";
    if text.is_empty() {
        return Err(BadSource::Missing { part: PART, example: EXAMPLE });
    }
    let lower = text.to_ascii_lowercase();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-.:[]".contains(letter);
    let is_host = url::Url::parse(&format!("https://{lower}/"))
        .is_ok_and(|url| url.host_str().is_some_and(|host| !host.is_empty()));
    if !lower.chars().all(allowed) || !is_host || lower.ends_with(':') {
        return Err(bad(PART, text, "is not a host with or without a port"));
    }
    if lower != "localhost" && !lower.contains(['.', ':']) {
        return Err(bad(
            PART,
            text,
            "has neither a dot nor a port in it; name the registry too, such as docker.io or ghcr.io",
        ));
    }
    Ok(match lower.as_str() {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB.to_owned(),
        _ => lower,
    })
}

fn repository(text: &str) -> Result<String, BadSource> {
    const PART: &str = "the repository's name";
    if text.is_empty() {
        return Err(BadSource::Missing { part: PART, example: EXAMPLE });
    }
    if text.chars().any(|letter| letter.is_ascii_uppercase()) {
        return Err(bad(PART, text, "has upper-case letters in it, which no registry allows"));
    }
    if text.len() > LONGEST_NAME || !text.split('/').all(is_word) {
        return Err(bad(
            PART,
            text,
            "may only have words of a-z and 0-9 in it, joined by `/`, `-`, `.`, `_` or `__`",
        ));
    }
    Ok(text.to_owned())
}

/// Letters and digits, joined by a dot, one or two underscores, or any number of hyphens.
fn is_word(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let joints = text.split(is_letter).filter(|joint| !joint.is_empty());
    let mut joints = joints
        .map(|joint| matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-'));
    text.starts_with(is_letter) && text.ends_with(is_letter) && joints.all(|joint| joint)
}

fn checked_tag(text: &str) -> Result<String, BadSource> {
    if text.is_empty() {
        return Err(BadSource::Missing { part: "the tag behind `:`", example: EXAMPLE });
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if text.len() > LONGEST_TAG || !text.chars().all(allowed) || text.starts_with(['.', '-']) {
        return Err(bad("the tag", text, "may only have letters, digits, `_`, `.` and `-`"));
    }
    Ok(text.to_owned())
}

fn sha256(text: &str) -> Result<String, BadSource> {
    match super::manifest::sha256_hex(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(bad("the digest", text, "is not `sha256:` with 64 digits of 0-9 and a-f")),
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}
