//! The keys file: YAML with a list `callers` and, where callers share limits, a list `tenants`. It is read whole or not at all, and everything that is
//! wrong is told at once, each with its line; no key's text is ever repeated.

use std::sync::Arc;

use super::{Allowed, Caller, Callers, Digest, Tenant};
use crate::limits::{CallerLimits, Rate};
use crate::manifest::Complaint;
use crate::manifest::complaint::{Notes, Place};
use crate::manifest::nearest::nearest;
use crate::manifest::node::{Content, Field, Node};
use crate::manifest::reader;
use crate::manifest::scalar::Meaning;

const CALLER_FIELDS: [&str; 6] = ["name", "sha256", "tenant", "models", "limits", "expires"];
const TENANT_FIELDS: [&str; 2] = ["name", "limits"];
const LIMIT_FIELDS: [&str; 5] =
    ["requestsPerSecond", "requestsPerMinute", "burst", "concurrentRequests", "tokensPerMinute"];

/// What a keys file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedKeys {
    /// The callers; those with a fault are left out.
    pub callers: Callers,
    /// What is wrong, in the order of the file. A file with a fault must not be used.
    pub errors: Vec<Complaint>,
}

/// What the bytes of the keys file `file` hold; its name is only for complaints.
pub fn parse(file: &str, bytes: &[u8]) -> ParsedKeys {
    let mut notes = Notes::of(file);
    let mut reading = Reading {
        notes: &mut notes,
        callers: Callers::default(),
        names: Vec::new(),
        tenants: Vec::new(),
    };
    if let Some(text) = crate::manifest::text(bytes, reading.notes) {
        let documents = reader::documents(text, reading.notes);
        if documents.is_empty() && reading.notes.errors.is_empty() {
            let message = "the file says nothing; write `callers: []` to let nobody in";
            reading.notes.error(Place::START, message);
        }
        for document in documents {
            reading.document(&document);
        }
    }
    let Reading { callers, .. } = reading;
    let mut errors = notes.errors;
    errors.sort_by_key(|complaint| (complaint.line, complaint.column));
    ParsedKeys { callers, errors }
}

struct Reading<'n> {
    notes: &'n mut Notes,
    callers: Callers,
    names: Vec<(Arc<str>, Place)>,
    /// Those that the file lists; where it lists none, a tenant is but a word for the log.
    tenants: Vec<(Arc<Tenant>, Place)>,
}

impl Reading<'_> {
    fn document(&mut self, document: &Node) {
        self.know(document, &["callers", "tenants"], "");
        // The callers refer to them.
        self.tenants(document);
        match document.field("callers") {
            Some(Field { node, .. }) if matches!(node.content, Content::List(_)) => {
                for caller in node.items() {
                    self.caller(caller);
                }
            }
            Some(field) => self.notes.error(field.place, "callers: must be a list"),
            None => self.notes.error(
                document.place,
                "callers: missing; write a list with name and sha256 of each",
            ),
        }
    }

    fn tenants(&mut self, document: &Node) {
        let Some(Field { node, place, .. }) = document.field("tenants") else { return };
        if !matches!(node.content, Content::List(_)) {
            self.notes.error(*place, "tenants: must be a list");
        }
        for tenant in node.items() {
            self.know(tenant, &TENANT_FIELDS, "");
            if !matches!(tenant.content, Content::Object(_)) {
                continue;
            }
            let limits = self.limits(tenant);
            let Some(name) = self.text(tenant, "name") else {
                self.notes.error(tenant.place, "name: missing; callers name their tenant by it");
                continue;
            };
            let place = tenant.place_of(["name"]);
            if let Some((_, first)) = self.tenants.iter().find(|(known, _)| *known.name == *name) {
                let line = first.line;
                let message = format!("name: the tenant on line {line} has this name already");
                self.notes.error(place, message);
                continue;
            }
            self.tenants.push((Arc::new(Tenant { name: name.into(), limits }), place));
        }
    }

    /// The tenant of a caller, which must be one of those listed if any are.
    fn tenant(&mut self, node: &Node) -> Option<Arc<Tenant>> {
        let name = self.text(node, "tenant")?;
        if self.tenants.is_empty() {
            return Some(Arc::new(Tenant { name: name.into(), limits: CallerLimits::default() }));
        }
        if let Some((tenant, _)) = self.tenants.iter().find(|(known, _)| *known.name == *name) {
            return Some(Arc::clone(tenant));
        }
        let message = match nearest(name, self.tenants.iter().map(|(known, _)| &*known.name)) {
            Some(meant) => format!("tenant: `{name}` is not in tenants; did you mean {meant}?"),
            None => format!("tenant: `{name}` is not in tenants; add it there"),
        };
        self.notes.error(node.place_of(["tenant"]), message);
        None
    }

    fn caller(&mut self, node: &Node) {
        let known = self.notes.errors.len();
        self.know(node, &CALLER_FIELDS, "");
        if !matches!(node.content, Content::Object(_)) {
            return;
        }
        let name = self.name(node);
        let digests = self.digests(node);
        let caller = Caller {
            tenant: self.tenant(node),
            models: self.models(node),
            limits: self.limits(node),
            expires: self.expires(node),
            name: name.unwrap_or_default(),
        };
        if self.notes.errors.len() > known {
            return;
        }
        let caller = Arc::new(caller);
        for (digest, place) in digests {
            if !self.callers.add(digest, Arc::clone(&caller)) {
                let message = "sha256: another caller has this key already; make a new one";
                self.notes.error(place, message);
            }
        }
    }

    fn name(&mut self, node: &Node) -> Option<Arc<str>> {
        let Some(name) = self.text(node, "name") else {
            self.notes.error(node.place, "name: missing; logs and limits know a caller by it");
            return None;
        };
        let place = node.place_of(["name"]);
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@/".contains(letter);
        if name.len() > 64 || !name.chars().all(plain) {
            let message = "name: at most 64 letters, digits and - _ . @ / are allowed";
            self.notes.error(place, message);
            return None;
        }
        if let Some((_, first)) = self.names.iter().find(|(known, _)| **known == *name) {
            let message = format!("name: the caller on line {} has this name already", first.line);
            self.notes.error(place, message);
            return None;
        }
        let name: Arc<str> = name.into();
        self.names.push((Arc::clone(&name), place));
        Some(name)
    }

    /// The digests of a caller's keys: one, or a list while keys are changed.
    fn digests(&mut self, node: &Node) -> Vec<(Digest, Place)> {
        let Some(field) = node.field("sha256") else {
            let message = "sha256: missing; write what printf %s KEY | sha256sum prints";
            self.notes.error(node.place, message);
            return Vec::new();
        };
        let one = std::slice::from_ref(&field.node);
        let listed = field.node.items();
        let mut digests = Vec::new();
        for node in if listed.is_empty() { one } else { listed } {
            let text = text_of(node).unwrap_or_default();
            match Digest::from_hex(text.trim()) {
                Some(digest) if digest == Digest::of(b"") => {
                    self.notes.error(node.place, "sha256: this is the digest of an empty key");
                }
                Some(digest) => digests.push((digest, node.place)),
                None => self.notes.error(
                    node.place,
                    "sha256: must be 64 hexadecimal digits, as printf %s KEY | sha256sum prints them",
                ),
            }
        }
        digests
    }

    fn models(&mut self, node: &Node) -> Allowed {
        let Some(field) = node.field("models") else { return Allowed::All };
        if !matches!(field.node.content, Content::List(_)) {
            let message = "models: must be a list of names; leave it out to allow all";
            self.notes.error(field.place, message);
        }
        let mut names = Vec::new();
        for item in field.node.items() {
            match text_of(item).map(str::trim) {
                Some(name) if !name.is_empty() => names.push(Arc::from(name)),
                _ => self.notes.error(item.place, "models: must be a list of names"),
            }
        }
        Allowed::Named(names)
    }

    fn limits(&mut self, node: &Node) -> CallerLimits {
        let Some(Field { node, .. }) = node.field("limits") else {
            return CallerLimits::default();
        };
        self.know(node, &LIMIT_FIELDS, "limits.");
        let per_second = self.count(node, "requestsPerSecond");
        let per_minute = self.count(node, "requestsPerMinute");
        let burst = self.count(node, "burst");
        if per_second.is_some() && per_minute.is_some() {
            let message = "limits: write requestsPerSecond or requestsPerMinute, not both";
            self.notes.error(node.place_of(["requestsPerMinute"]), message);
        }
        let requests = match (per_second, per_minute) {
            (Some(count), _) => Some(Rate::per_second(count, burst.unwrap_or(count))),
            // A minute's worth at once would be no limit to speak of.
            (None, Some(count)) => {
                Some(Rate::per_minute(count, burst.unwrap_or(count.div_ceil(60))))
            }
            (None, None) => None,
        };
        if let (Some(place), None) = (node.field("burst").map(|field| field.place), requests) {
            self.notes.error(place, "limits.burst: needs requestsPerSecond or requestsPerMinute");
        }
        CallerLimits {
            requests,
            concurrent: self.count(node, "concurrentRequests"),
            tokens: self.count(node, "tokensPerMinute").map(|count| Rate::per_minute(count, count)),
        }
    }

    fn expires(&mut self, node: &Node) -> Option<i64> {
        let text = self.text(node, "expires")?;
        let end = moment(text);
        if end.is_none() {
            let message =
                "expires: write a time as 2027-01-31T18:00:00Z, or a day as 2027-01-31 for its end";
            self.notes.error(node.place_of(["expires"]), message);
        }
        end
    }

    fn count(&mut self, node: &Node, name: &str) -> Option<u32> {
        let field = node.field(name)?;
        let count = match &field.node.content {
            Content::Scalar(scalar) => match scalar.means() {
                Meaning::Number(number) => {
                    number.as_u64().and_then(|count| u32::try_from(count).ok())
                }
                _ => None,
            },
            Content::List(_) | Content::Object(_) => None,
        };
        if count.is_none() {
            let message =
                format!("limits.{name}: must be a whole number, 0 or more, without quotes");
            self.notes.error(field.place, message);
        }
        count
    }

    /// The text of the entry `name`; a list or an object there is told of.
    fn text<'t>(&mut self, node: &'t Node, name: &str) -> Option<&'t str> {
        let field = node.field(name)?;
        let text = text_of(&field.node).map(str::trim).filter(|text| !text.is_empty());
        if text.is_none() {
            self.notes.error(field.place, format!("{name}: must be a text"));
        }
        text
    }

    /// Tells of what is no object, and of its fields that are none of `known`.
    fn know(&mut self, node: &Node, known: &[&str], before: &str) {
        if !matches!(node.content, Content::Object(_)) {
            let message = format!("expected an object with {}", known.join(", "));
            self.notes.error(node.place, message);
        }
        for Field { name, place, .. } in node.fields() {
            if known.contains(&name.as_str()) {
                continue;
            }
            let fields = known.iter().copied();
            let message = match nearest(name, fields) {
                Some(meant) => format!("{before}{name}: unknown; did you mean {meant}?"),
                None => format!("{before}{name}: unknown; known are {}", known.join(", ")),
            };
            self.notes.error(*place, message);
        }
    }
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Scalar(scalar) => Some(&scalar.text),
        Content::List(_) | Content::Object(_) => None,
    }
}

/// The second of Unix time at which what is written in `text` is over.
fn moment(text: &str) -> Option<i64> {
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        let next = day.tomorrow().ok()?.at(0, 0, 0, 0);
        return Some(jiff::tz::Offset::UTC.to_timestamp(next).ok()?.as_second());
    }
    Some(text.parse::<jiff::Timestamp>().ok()?.as_second())
}
