//! The configuration file: what the options of a machine are, once for all commands; and `phos-ft config`, which shows where each value comes
//! from.
//!
//! # Rules
//!
//! * A key is the long name of an option without its dashes, and a value is what would stand after it, or `true` and `false`. What is for
//!   one command alone (`--from`, `--start-fresh`) has no place there.
//! * The command line comes before variables, variables before the file, the file before what is built in: the file replaces defaults, and
//!   nothing else.
//! * All of it is checked before anything is done. What is wrong is named with its line, and nothing is started.
//! * Nobody but root and the user who runs phos-ft may change it: it names programs that phos-ft runs.
//! * A supervisor hands everything on to agent and sidecar, which then read no file: a change of it never reaches half of a job, and a
//!   mistake in it cannot keep the next sidecar from its job.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;
use toml_edit::{Document, Item, Value};

use super::args::{self, Output};
use super::supervise::is_supervised;
use super::{exit, fail};

/// Where the file is, unless another is named.
pub(super) const DEFAULT: &str = "/etc/phos-ft.toml";
/// The option that names another, and its variable.
const OPTION: &str = "config";
/// Options that are for one command alone.
const NOT_HERE: [&str; 5] = [OPTION, "from", "start-fresh", "help", "version"];
/// Commands that do the same on every machine.
const NO_FILE: [&str; 2] = ["completions", "man"];
/// Bytes of a file at most.
const MAX_FILE: u64 = 1 << 20;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    /// It cannot be read.
    #[error(
        "cannot read the configuration file {}: {source}; {}", path.display(),
        match source.kind() {
            io::ErrorKind::PermissionDenied => "run this as a user who may read it (root), or name another with --config",
            _ => "name another with --config, or leave that out",
        }
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could say which programs root runs.
    #[error(
        "the configuration file {} can be changed by others than root and the user who runs phos-ft: `chown root` it, and `chmod go-w`",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// It is larger than any that somebody wrote.
    #[error("the configuration file {} has more than {MAX_FILE} bytes: is it the right one?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not TOML.
    #[error("the configuration file {} cannot be understood: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A setting is not one.
    #[error("{}, line {line}: {message}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The line of it.
        line: usize,
        /// What is wrong, and what helps.
        message: String,
    },
}

/// The exit code for it.
pub(super) fn code(error: &ConfigError) -> u8 {
    match error {
        ConfigError::Open { .. } => exit::PERMISSION,
        ConfigError::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            exit::PERMISSION
        }
        _ => exit::USAGE,
    }
}

/// A file, checked.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    path: PathBuf,
    settings: BTreeMap<String, Setting>,
}

#[derive(Debug)]
struct Setting {
    line: usize,
    values: Vec<OsString>,
}

impl ConfigFile {
    /// The file that this command line, or the environment, names; or the usual one, if there is one.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn find(matches: &ArgMatches) -> Result<ConfigFile, ConfigError> {
        let needs_none = matches
            .subcommand_name()
            .is_some_and(|name| NO_FILE.contains(&name));
        if needs_none || is_supervised() {
            return Ok(ConfigFile::default());
        }
        let named = below(matches, OPTION).try_get_one::<PathBuf>(OPTION);
        let (path, is_named) = match named.ok().flatten() {
            Some(path) => (path.clone(), true),
            None => (DEFAULT.into(), false),
        };
        match read(&path) {
            Ok(text) => ConfigFile::parse(path, &text),
            Err(ConfigError::Read { source, .. })
                if !is_named && source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(ConfigFile::default())
            }
            Err(e) => Err(e),
        }
    }

    fn parse(path: PathBuf, text: &str) -> Result<ConfigFile, ConfigError> {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(e) => {
                let message = e.to_string();
                return Err(ConfigError::Syntax { path, message });
            }
        };
        let options = args::command();
        let mut settings = BTreeMap::new();
        for (key, item) in document.as_table() {
            let at = document.as_table().key(key).and_then(toml_edit::Key::span);
            let before = at.map_or("", |at| text.get(..at.start).unwrap_or_default());
            let line = 1 + before.matches('\n').count();
            match values(&options, key, item) {
                Ok(values) => settings.insert(key.to_owned(), Setting { line, values }),
                Err(message) => {
                    return Err(ConfigError::Setting {
                        path,
                        line,
                        message,
                    });
                }
            };
        }
        Ok(ConfigFile { path, settings })
    }

    /// The grammar in which what the file says is the default.
    pub(super) fn apply(&self, command: Command) -> Command {
        let command = command.mut_args(|arg| match self.of(&arg) {
            Some(setting) => arg.default_values(setting.values.clone()),
            None => arg,
        });
        command.mut_subcommands(|subcommand| self.apply(subcommand))
    }

    fn of(&self, arg: &Arg) -> Option<&Setting> {
        self.settings.get(arg.get_long()?)
    }
}

/// Where the value of this option is: that of all commands with their subcommand, if there is one.
fn below<'a>(matches: &'a ArgMatches, id: &str) -> &'a ArgMatches {
    match matches.subcommand() {
        Some((_, below)) if below.ids().any(|known| known == id) => below,
        _ => matches,
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    let is_closed = [0, own].contains(&about.uid()) && about.mode() & 0o022 == 0;
    // Everybody may write to /dev/null, which is how to do without a file.
    if !is_closed && !about.file_type().is_char_device() {
        return Err(ConfigError::Open {
            path: path.to_owned(),
        });
    }
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_FILE {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(text)
}

/// What a setting says, as the option would have it; or what is wrong with it.
fn values(options: &Command, key: &str, item: &Item) -> Result<Vec<OsString>, String> {
    let known = |arg: &&Arg| arg.get_long().is_some_and(|long| !NOT_HERE.contains(&long));
    let Some(arg) = (options.get_arguments().filter(known)).find(|arg| arg.get_long() == Some(key))
    else {
        return Err(unknown(options.get_arguments().filter(known), key));
    };
    let texts = texts(arg, key, item)?;
    if arg.get_action().takes_values() {
        for text in &texts {
            accepted(key, text)?;
        }
    }
    Ok(texts.into_iter().map(OsString::from).collect())
}

fn unknown<'a>(known: impl Iterator<Item = &'a Arg>, key: &str) -> String {
    if NOT_HERE.contains(&key) {
        return format!("{key} is for one command alone: give it as --{key}");
    }
    let alike = known
        .filter_map(Arg::get_long)
        .map(|long| (strsim::jaro(long, key), long))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match alike {
        Some((alike, long)) if alike > 0.7 => {
            format!("there is no option {key}: do you mean {long}?")
        }
        _ => format!(
            "there is no option {key}: a key is the name of an option of phos-ft or `phos-ft run` without its dashes, as in \
             interval = \"5m\""
        ),
    }
}

/// The values of a setting as text.
fn texts(arg: &Arg, key: &str, item: &Item) -> Result<Vec<String>, String> {
    let value = item.as_value().ok_or_else(|| {
        format!("{key} is an option and no table: write {key} = …, and no [{key}]")
    })?;
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Boolean(value) => Ok(vec![value.value().to_string()]),
            _ => Err(format!("{key} is either true or false")),
        };
    }
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.value().clone()),
        Value::Integer(number) => Ok(number.value().to_string()),
        _ => Err(format!(
            "{key} is a text or a whole number, as after --{key}"
        )),
    };
    match value {
        Value::Array(list) if arg.get_value_delimiter().is_some() => list.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// Whether the option takes this value. It is tried alone, without what variables say.
fn accepted(key: &str, text: &str) -> Result<(), String> {
    let command = args::command()
        .mut_args(|arg| arg.env(None::<&str>))
        .mut_subcommand("status", |status| {
            status.mut_args(|arg| arg.env(None::<&str>))
        });
    let line = ["phos-ft", &format!("--{key}={text}"), "status"];
    let Err(e) = command.try_get_matches_from(line) else {
        return Ok(());
    };
    let why = match std::error::Error::source(&e) {
        Some(source) => source.to_string(),
        // Without what it says of the command line.
        None => {
            let text = e.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            first.trim_start_matches("error: ").trim().to_owned()
        }
    };
    Err(format!("{key} = {text:?} is refused: {why}"))
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
enum Origin {
    /// The command line.
    CommandLine,
    /// A variable of the environment.
    Environment { variable: String },
    /// The configuration file.
    File { path: PathBuf, line: usize },
    /// What is built in.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment { variable } => write!(f, "${variable}"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

#[derive(Debug, Serialize)]
struct Shown {
    option: String,
    /// Without one, the option has no effect, or its effect depends on the machine.
    value: Option<String>,
    #[serde(flatten)]
    origin: Origin,
}

/// Shows all options with their values and where these come from.
pub(super) fn show(matches: &ArgMatches, file: &ConfigFile, output: Output) -> u8 {
    let shown = all(matches, file);
    match output {
        Output::Json => match serde_json::to_string_pretty(&shown) {
            Ok(text) => println!("{text}"),
            Err(e) => return fail(e, exit::FAILED),
        },
        Output::Text => {
            let width = |column: fn(&Shown) -> usize| shown.iter().map(column).max().unwrap_or(0);
            let option = width(|shown| shown.option.len());
            let value = width(|shown| shown.value.as_ref().map_or(1, String::len)).min(40);
            for shown in &shown {
                println!(
                    "{:option$}  {:value$}  {}",
                    shown.option,
                    shown.value.as_deref().unwrap_or("-"),
                    shown.origin
                );
            }
        }
    }
    exit::OK
}

fn all(matches: &ArgMatches, file: &ConfigFile) -> Vec<Shown> {
    let command = args::command();
    let options = command.get_arguments().filter(|arg| {
        arg.get_long()
            .is_some_and(|long| !["help", "version"].contains(&long))
    });
    let shown = options.map(|arg| {
        let id = arg.get_id().as_str();
        let matches = below(matches, id);
        let raw = matches.try_get_raw(id).ok().flatten();
        let texts: Vec<_> = (raw.into_iter().flatten())
            .map(|text| text.to_string_lossy())
            .collect();
        let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
        let origin = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => Origin::CommandLine,
            Some(ValueSource::EnvVariable) => Origin::Environment {
                variable: arg.get_env().unwrap_or_default().to_string_lossy().into(),
            },
            _ => match file.of(arg) {
                Some(setting) => Origin::File {
                    path: file.path.clone(),
                    line: setting.line,
                },
                None => Origin::Default,
            },
        };
        let value = match is_flag {
            true => Some(matches.get_flag(id).to_string()),
            false => (!texts.is_empty()).then(|| texts.join(",")),
        };
        Shown {
            option: arg.get_long().unwrap_or_default().to_owned(),
            value,
            origin,
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use clap::FromArgMatches as _;
    use rstest::rstest;

    use super::super::args::Cli;
    use super::*;

    fn file(text: &str) -> Result<ConfigFile, String> {
        ConfigFile::parse("x.toml".into(), text).map_err(|e| e.to_string())
    }

    fn parse(text: &str, line: &str) -> (Cli, ArgMatches, ConfigFile) {
        let file = file(text).unwrap();
        let matches = file
            .apply(args::command())
            .try_get_matches_from(line.split_whitespace())
            .unwrap();
        (Cli::from_arg_matches(&matches).unwrap(), matches, file)
    }

    const WHOLE: &str = "\
# of this machine
store = \"s3://bucket/runs\"
require-encryption = true
keep-last = 5
without-cpu-features = [\"avx512f\", \"amx_tile\"]

interval = '5m'
";

    #[test]
    fn the_file_says_what_is_not_given() {
        let line = "phos-ft --interval 9m config --run-dir /x";
        let (cli, matches, file) = parse(WHOLE, line);
        assert_eq!(cli.common.store(), "s3://bucket/runs");
        assert!(cli.common.require_encryption);
        assert_eq!(cli.sidecar.keep.keep_last, Some(5));
        assert_eq!(cli.sidecar.without_cpu_features, ["avx512f", "amx_tile"]);
        let shown = all(&matches, &file);
        let of = |name: &str| {
            let shown = shown.iter().find(|shown| shown.option == name).unwrap();
            (
                shown.value.clone().unwrap_or_default(),
                shown.origin.to_string(),
            )
        };
        for (option, value, origin) in [
            ("interval", "9m", "command line"),
            ("keep-last", "5", "x.toml, line 4"),
            ("without-cpu-features", "avx512f,amx_tile", "x.toml, line 5"),
            ("require-encryption", "true", "x.toml, line 3"),
            ("start-fresh", "false", "default"),
            ("lease", "30s", "default"),
            ("run-dir", "/x", "command line"),
            ("state-dir", "/var/lib/phos-ft", "default"),
            ("upload-limit", "", "default"),
        ] {
            assert_eq!(
                of(option),
                (value.to_owned(), origin.to_owned()),
                "{option}"
            );
        }
    }

    #[test]
    fn subcommands_have_the_same_options() {
        let text = "store = '/a'\nuser = '7'\nkeep-daily = 3\ninterval = '7s'\ntcp = 'close'";
        let (cli, ..) = parse(text, "phos-ft run -- true");
        let Some(args::Command::Run { agent, .. }) = cli.command else {
            panic!();
        };
        assert_eq!(
            (agent.user.as_deref(), agent.tcp),
            (Some("7"), args::TcpArg::Close)
        );
        assert_eq!(cli.common.store(), "/a");
        let (cli, ..) = parse(text, "phos-ft restore 3 --store /b");
        let Some(args::Command::Restore { sidecar, .. }) = cli.command else {
            panic!();
        };
        assert_eq!(sidecar.keep.keep_daily, Some(3));
        assert_eq!(cli.common.store(), "/b");
    }

    #[rstest]
    #[case::unknown(
        "\nintervall = '5m'",
        "x.toml, line 2: there is no option intervall: do you mean interval?"
    )]
    #[case::nothing_like_it(
        "colour = 1",
        "there is no option colour: a key is the name of an option"
    )]
    #[case::once("from = 3", "from is for one command alone: give it as --from")]
    #[case::value("a = 1\ninterval = 60", "there is no option a")]
    #[case::unit(
        "interval = 60",
        "line 1: interval = \"60\" is refused: \"60\" is not a time: write a number with a unit"
    )]
    #[case::choice("tcp = 'open'", "tcp = \"open\" is refused: ")]
    #[case::range("keep-last = 0", "keep-last = \"0\" is refused: ")]
    #[case::flag(
        "require-encryption = 'yes'",
        "require-encryption is either true or false"
    )]
    #[case::kind("store = 1.5", "store is a text or a whole number, as after --store")]
    #[case::list("store = ['a']", "store is a text or a whole number")]
    #[case::table("[store]\na = 1", "store is an option and no table")]
    #[case::toml("store = ", "the configuration file x.toml cannot be understood: ")]
    #[case::twice("lease = '0s'\nlease = '0s'", "duplicate key")]
    fn mistakes_are_named_with_their_line(#[case] text: &str, #[case] message: &str) {
        let said = file(text).unwrap_err();
        assert!(said.contains(message), "{said}");
    }

    #[test]
    fn a_file_that_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.toml");
        let named = |line: &[&str]| {
            let matches = args::command().try_get_matches_from(line).unwrap();
            ConfigFile::find(&matches).map(|file| file.settings.len())
        };
        let text = path.to_str().unwrap();
        for line in [
            &["phos-ft", "--config", text, "status"][..],
            &["phos-ft", "status", "--config", text],
            &["phos-ft", "--config", text],
        ] {
            std::fs::write(&path, "lease = '5s'").unwrap();
            assert_eq!(named(line).unwrap(), 1, "{line:?}");
            std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
            let said = named(line).unwrap_err().to_string();
            assert!(said.contains("is it the right one?"), "{said}");
            std::fs::write(&path, [b'#', 0xff]).unwrap();
            let said = named(line).unwrap_err().to_string();
            assert!(said.contains("UTF-8"), "{said}");
            std::fs::write(&path, "lease = '5s'").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
            let said = named(line).unwrap_err().to_string();
            assert!(said.contains("chmod go-w"), "{said}");
            std::fs::remove_file(&path).unwrap();
            let said = named(line).unwrap_err().to_string();
            assert!(
                said.contains("No such file") && said.contains("--config"),
                "{said}"
            );
        }
        assert_eq!(
            named(&["phos-ft", "--config", text, "completions", "zsh"]).unwrap(),
            0
        );
        assert_eq!(named(&["phos-ft", "--config", "/dev/null"]).unwrap(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_file_or_an_error(text in "[a-z\\-=\"'\\[\\]{}0-9.#\n ,]{0,200}", key in "(store|lease|keep-last|tcp)?") {
            let _ = file(&format!("{key}{text}"));
        }
    }
}
