//! The directory of files that COPY may read and write.
//!
//! A path is resolved from the directory name by name, and symbolic links are not followed: a link
//! could lead to any place its creator chose. Only regular files are read, because a pipe might
//! never end. A file is written under a temporary name, and renamed when it is complete; an
//! incomplete file is deleted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use filbert_grid::query::SqlError;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::{of_file, refused};

/// The maximum number of files that one statement reads.
const FILES_MAX: usize = 10_000;

/// The flags for opening a directory of a path.
const ON_THE_WAY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// The directory from the settings.
pub(super) struct Folder {
    open: Arc<OwnedFd>,
    /// Its canonical path, and its path in the settings. Absolute paths begin with one of them.
    paths: [PathBuf; 2],
}

/// A name in a directory within the folder. Whether the file exists is not known before it is
/// opened.
pub(super) struct Located {
    within: Arc<OwnedFd>,
    name: OsString,
    /// As shown in errors.
    path: PathBuf,
}

impl Folder {
    /// Opens the directory from the settings. The directory itself may be a link, because the
    /// operator has created it.
    pub(super) fn open(configured: &Path) -> Result<Folder, SqlError> {
        let path = configured.canonicalize().map_err(|error| of_file(configured, "found", &error))?;
        let open = openat(CWD, &path, ON_THE_WAY, Mode::empty())
            .map_err(|error| of_file(configured, "opened", &error.into()))?;
        Ok(Folder { open: Arc::new(open), paths: [path, configured.to_path_buf()] })
    }

    /// Finds a path. A relative path starts at the folder.
    pub(super) fn locate(&self, path: &str) -> Result<Located, SqlError> {
        let [shown, _] = &self.paths;
        let outside = || refused(format!("{path:?} is not within the directory for COPY, {}", shown.display()));
        let given = Path::new(path);
        let inner = match given.is_absolute() {
            true => self.paths.iter().find_map(|own| given.strip_prefix(own).ok()).ok_or_else(outside)?,
            false => given,
        };
        let mut names = Vec::new();
        for part in inner.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        let name = names.pop().unwrap_or(OsStr::new("."));
        let (mut within, mut path) = (self.open.clone(), shown.clone());
        for name in names {
            path.push(name);
            within = Arc::new(step(&within, name, &path)?);
        }
        Ok(Located { within, name: name.to_owned(), path: path.join(name) })
    }

    /// The files of a path. The last part of the path may contain `*`.
    pub(super) fn files(&self, path: &str) -> Result<Vec<Located>, SqlError> {
        let one = self.locate(path)?;
        let pattern = one.name.to_string_lossy().into_owned();
        let Some((before, after)) = pattern.split_once('*') else { return Ok(vec![one]) };
        let parent = one.path.parent().unwrap_or(&one.path);
        let unreadable = |error: Errno| of_file(parent, "read", &error.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(&one.within).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let fits = name.starts_with(before) && name.ends_with(after) && name.len() >= before.len() + after.len();
            if fits && name != "." && name != ".." {
                names.push(name);
            }
            if names.len() > FILES_MAX {
                return Err(refused(format!("{path:?} stands for more than {FILES_MAX} files")));
            }
        }
        names.sort();
        let located =
            |name: String| Located { within: one.within.clone(), path: parent.join(&name), name: name.into() };
        Ok(names.into_iter().map(located).collect())
    }
}

/// Opens a directory within another directory.
fn step(within: &OwnedFd, name: &OsStr, path: &Path) -> Result<OwnedFd, SqlError> {
    openat(within, name, ON_THE_WAY, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            refused(format!("{:?} is no directory, or a link, which COPY does not follow", path.display().to_string()))
        }
        error => of_file(path, "opened", &error.into()),
    })
}

impl Located {
    /// Its path, for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading.
    pub(super) fn open(&self) -> Result<File, SqlError> {
        let path = || self.path.display().to_string();
        // Does not wait for the writer of a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.within, &self.name, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP => refused(format!("{:?} is a link, which COPY does not follow", path())),
            error => of_file(&self.path, "opened", &error.into()),
        })?;
        let status = fstat(&file).map_err(|error| of_file(&self.path, "opened", &error.into()))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            found => Err(refused(format!("{:?} is no regular file but {found:?}, expected a regular file", path()))),
        }
    }

    /// This location, or the file `name` in it if it is a directory.
    pub(super) fn or_in_it(self, name: &str) -> Result<Located, SqlError> {
        let is_directory = statat(&self.within, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory);
        if !is_directory {
            return Ok(self);
        }
        let within = Arc::new(step(&self.within, &self.name, &self.path)?);
        Ok(Located { within, name: name.into(), path: self.path.join(name) })
    }

    /// Creates a new file beside it. [`Part::publish`] renames it to the final name.
    pub(super) fn part(self) -> Result<(Part, File), SqlError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| of_file(&self.path, "written", &std::io::Error::other(error)))?;
        // A unique name, also among leftover files.
        let mut name = self.name.clone();
        name.push(format!(".{:016x}.part", u64::from_le_bytes(random)));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.within, &name, flags, Mode::from_raw_mode(0o666))
            .map_err(|error| of_file(&self.path, "written", &error.into()))?;
        Ok((Part { located: self, name, is_published: false }, file.into()))
    }
}

/// A file that is being written. It is deleted unless it is published.
pub(super) struct Part {
    located: Located,
    name: OsString,
    is_published: bool,
}

impl Part {
    /// Its final path, for errors.
    pub(super) fn path(&self) -> &Path {
        &self.located.path
    }

    /// Renames the file to its final name, and replaces an existing file.
    pub(super) fn publish(mut self) -> Result<(), SqlError> {
        let Located { within, name, path } = &self.located;
        renameat(within, &self.name, within, name).map_err(|error| of_file(path, "written", &error.into()))?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_published
            && let Err(error) = unlinkat(&self.located.within, &self.name, AtFlags::empty())
        {
            tracing::warn!("{:?} is left beside {}: {error}", self.name, self.located.path.display());
        }
    }
}
