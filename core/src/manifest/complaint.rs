//! What is wrong with a file, or worth knowing about it, and where.

use std::fmt;

/// One thing to fix in a file, or to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file, as the caller calls it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, where one is meant.
    pub column: Option<usize>,
    /// What is wrong and what to do, on one line.
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// The beginning of a file.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// The complaints of one file, as they are found.
#[derive(Debug)]
pub(crate) struct Notes {
    file: String,
    pub(crate) errors: Vec<Complaint>,
    pub(crate) warnings: Vec<Complaint>,
}

impl Notes {
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>) {
        let complaint = self.complaint(place, message.into());
        if !self.errors.contains(&complaint) {
            self.errors.push(complaint);
        }
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>) {
        let complaint = self.complaint(place, message.into());
        if !self.warnings.contains(&complaint) {
            self.warnings.push(complaint);
        }
    }

    fn complaint(&self, place: Place, message: String) -> Complaint {
        let Place { line, column } = place;
        Complaint { file: self.file.clone(), line, column: Some(column), message }
    }
}
