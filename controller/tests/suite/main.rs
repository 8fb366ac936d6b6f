//! The controller as a program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod settings;
