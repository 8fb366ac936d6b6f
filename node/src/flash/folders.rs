//! The folders of a load. A file is asked for by its name in its open folder: a whole path takes longer to look
//! up, which counts where there are a great many files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flexinfer_core::sources::RelativePath;

use crate::inside;

/// A folder of the source, which the destination has too.
#[derive(Debug)]
pub(super) struct Folder {
    /// Where it lies, behind all links.
    pub(super) real: PathBuf,
    /// What it is called below the source; nothing for the source itself.
    pub(super) path: Option<RelativePath>,
}

/// Where a file of the source lies.
#[derive(Debug)]
pub(super) struct Place {
    /// Which of the folders.
    pub(super) folder: usize,
    /// Where it really is, if its name there is a link.
    pub(super) behind: Option<PathBuf>,
}

impl Place {
    /// What to ask for in the open folder: the last name of `path`, or the real place, which wins over any folder.
    pub(super) fn name<'a>(&'a self, path: &'a RelativePath) -> &'a Path {
        self.behind.as_deref().unwrap_or(Path::new(path.file_name()))
    }
}

impl Folder {
    /// The way to it from the source, and to its copy from the destination.
    pub(super) fn way(&self) -> &Path {
        self.path.as_ref().map_or(Path::new(""), |path| Path::new(path.as_str()))
    }

    /// What it is called below `top`.
    pub(super) fn below(&self, top: &Path) -> PathBuf {
        self.path.as_ref().map_or_else(|| top.to_path_buf(), |path| path.below(top))
    }
}

/// Opens folders, and keeps the last one open: the next file most often lies in it too.
pub(super) struct Opened<'a> {
    folders: &'a [Folder],
    /// The folder with copies of the folders; nothing for the folders themselves.
    top: Option<&'a File>,
    last: Option<(usize, Arc<File>)>,
}

impl<'a> Opened<'a> {
    /// Opens the folders of the source.
    pub(super) fn in_source(folders: &'a [Folder]) -> Self {
        Self { folders, top: None, last: None }
    }

    /// Opens the folders of the same names below `top`, where links are followed nowhere.
    pub(super) fn below(top: &'a File, folders: &'a [Folder]) -> Self {
        Self { folders, top: Some(top), last: None }
    }

    /// The folder of this number.
    pub(super) fn get(&mut self, number: usize) -> io::Result<&Arc<File>> {
        let last = self.last.take().filter(|(last, _)| *last == number);
        let folder = match last {
            Some((_, folder)) => folder,
            None => Arc::new(self.open(number)?),
        };
        Ok(&self.last.insert((number, folder)).1)
    }

    fn open(&self, number: usize) -> io::Result<File> {
        let folder = self.folders.get(number).ok_or(io::ErrorKind::NotFound)?;
        match self.top {
            None => File::open(&folder.real),
            Some(top) => inside::folder(top, folder.way()),
        }
    }
}
