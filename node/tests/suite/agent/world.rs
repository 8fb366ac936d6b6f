//! A node for one test: a folder with its tools, its devices and the host's root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::world::program;

pub(super) struct Node {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// What one look printed.
pub(super) struct Looked {
    pub(super) patch: Value,
    pub(super) log: String,
}

impl Looked {
    pub(super) fn label(&self, name: &str) -> &Value {
        &self.patch["metadata"]["labels"][format!("flexinfer.ai/{name}")]
    }

    pub(super) fn annotation(&self, name: &str) -> &Value {
        &self.patch["metadata"]["annotations"][format!("flexinfer.ai/{name}")]
    }
}

impl Node {
    pub(super) fn new() -> Self {
        let node = Self { folder: tempfile::tempdir().unwrap(), environment: Vec::new() };
        for folder in ["bin", "sys", "host/bin"] {
            fs::create_dir_all(node.path(folder)).unwrap();
        }
        node
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A tool of this name in the container, whose script is for `/bin/sh`.
    pub(super) fn tool(self, name: &str, script: &str) -> Self {
        write_script(&self.path("bin").join(name), script);
        self
    }

    /// A tool in the host's root, which has a shell and nothing else: no other tool, and no `chroot`.
    pub(super) fn host_tool(self, name: &str, script: &str) -> Self {
        write_script(&self.path("host/bin").join(name), script);
        self.host_file(Path::new("/bin/sh"));
        let listed = Command::new("ldd").arg("/bin/sh").output().unwrap();
        let listed = text(&listed.stdout);
        let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
        libraries.for_each(|library| self.host_file(Path::new(library)));
        self
    }

    /// The same file in the host's root as on this machine.
    fn host_file(&self, path: &Path) {
        let copy = self.path("host").join(path.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, copy).unwrap();
    }

    /// NVIDIA's library in this folder of the host, behaving so. `None` where no C compiler can build it.
    pub(super) fn host_nvml(self, folder: &str, behaviour: &str) -> Option<Self> {
        let library = fake_nvml()?;
        let folder = self.path("host").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(library, folder.join("libnvidia-ml.so.1")).unwrap();
        Some(self.variable("FAKE_NVML", behaviour))
    }

    /// A file below the node's `/sys`.
    pub(super) fn sysfs(self, path: &str, content: &str) -> Self {
        let file = self.path("sys").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        self
    }

    /// A device on the node's bus.
    pub(super) fn on_the_bus(self, vendor: &str) -> Self {
        let folder = format!("bus/pci/devices/0000:03:00.{vendor}");
        self.sysfs(&format!("{folder}/vendor"), vendor)
            .sysfs(&format!("{folder}/class"), "0x030000")
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// NVIDIA's library, behaving so. `None` where no C compiler can build it.
    pub(super) fn nvml(self, behaviour: &str) -> Option<Self> {
        let library = fake_nvml()?;
        Some(self.variable("FLEXINFER_NVML", library.to_str()?).variable("FAKE_NVML", behaviour))
    }

    /// The agent, with nothing but what the node has.
    pub(super) fn agent(&self) -> Command {
        let mut command = program();
        if !rustix::process::geteuid().is_root() {
            // Another root is for root alone, if only of a namespace of its own.
            let agent = command.get_program().to_owned();
            command = Command::new("/usr/bin/unshare");
            command.env_clear().args(["--map-root-user", "--"]).arg(agent);
        }
        command.arg("agent").env("PATH", self.path("bin")).env("HOME", self.path("home"));
        command.env("FLEXINFER_NVML", self.path("no library"));
        command
            .env("FLEXINFER_SYSFS", self.path("sys"))
            .env("FLEXINFER_HOST_ROOT", self.path("host"));
        command.env("NODE_NAME", "node-1");
        command.envs(self.environment.iter().cloned());
        command
    }

    /// One dry look, which must work.
    pub(super) fn look(&self) -> Looked {
        let output = self.agent().args(["--dry-run", "--once"]).output().unwrap();
        let log = text(&output.stderr);
        assert!(output.status.success(), "{log}");
        let patch = serde_json::from_slice(&output.stdout).expect(&log);
        Looked { patch, log }
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write_script(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A script that prints `text`, by what the shell itself can.
pub(super) fn printing(text: &str) -> String {
    format!("while IFS= read -r line; do printf '%s\\n' \"$line\"; done <<'END'\n{text}\nEND")
}

/// The fake library, built once for all tests.
fn fake_nvml() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let built = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvidia-ml.so.1");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nvml/nvml.c");
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
        match compiled {
            Ok(Output { status, .. }) if status.success() => Some((folder, library)),
            Ok(output) => panic!("the fake library does not compile: {}", text(&output.stderr)),
            Err(_) => None,
        }
    });
    if built.is_none() {
        eprintln!("skipped: there is no C compiler to build the fake library with");
    }
    built.as_ref().map(|(_, library)| library.as_path())
}
