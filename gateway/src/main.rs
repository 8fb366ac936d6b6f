//! The gateway's program: reads the command line and hands over.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|command| command == "supervise") {
        let command: Vec<OsString> = args.skip_while(|arg| arg == "--").collect();
        return flexinfer_gateway::local::supervise(&command);
    }
    ExitCode::from(2)
}
