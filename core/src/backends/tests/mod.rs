//! Tests of the backends.
