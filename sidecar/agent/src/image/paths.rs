//! Paths in an image's description: as text, or as bytes where a path is not UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl Written {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes {
                bytes: path.as_os_str().as_bytes().to_vec(),
            },
        }
    }

    fn path(self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes { bytes } => OsString::from_vec(bytes).into(),
        }
    }
}

/// A path, for `#[serde(with)]`.
pub mod one {
    use super::*;

    /// Writes a path as text, or as bytes where it is no UTF-8.
    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Written::of(path).serialize(to)
    }

    /// Reads a path that was written as text or as bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Written::deserialize(from).map(Written::path)
    }
}

/// Paths, for `#[serde(with)]`.
pub mod many {
    use super::*;

    /// Writes paths, each as text, or as bytes where it is no UTF-8.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Written::of(path)))
    }

    /// Reads paths that were written as text or as bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let written = Vec::<Written>::deserialize(from)?;
        Ok(written.into_iter().map(Written::path).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        #[derive(Serialize, Deserialize)]
        struct Both {
            #[serde(with = "one")]
            one: PathBuf,
            #[serde(with = "many")]
            many: Vec<PathBuf>,
        }
        let latin = PathBuf::from(OsString::from_vec(b"/data/caf\xe9.log".to_vec()));
        let both = Both {
            one: latin.clone(),
            many: vec!["/data/café.log".into(), latin],
        };
        let text = serde_json::to_string(&both).unwrap();
        assert!(text.contains("\"/data/café.log\""), "{text}");
        let back: Both = serde_json::from_str(&text).unwrap();
        assert_eq!((back.one, back.many), (both.one, both.many));
    }
}
