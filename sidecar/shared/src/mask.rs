//! Masks secrets in command lines, which are written to logs and into every manifest, and in which people give tokens as
//! arguments.
//!
//! # Rules
//!
//! * A secret is recognised by its name (`--api-key VALUE`, `WANDB_API_KEY=VALUE`), by its place (`scheme://user:PASSWORD@host`,
//!   `Bearer VALUE`) or by how such tokens begin. A secret under another name is not recognised, so nothing relies on it: a
//!   checkpoint has the job's memory, and with that its arguments.
//! * Words that a shell is given as one (`bash -c "TOKEN=… python"`) are looked at one by one.
//! * Masking twice is masking once, and two commands that differ in secrets alone are the same: a token that was renewed keeps nobody
//!   from resuming.

/// The text that takes the place of a secret.
pub const MASK: &str = "***";

/// What a name ends in whose value is a secret.
const SECRETS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "apikey",
    "auth",
];
/// The same before `key`.
const KEYS: &[&str] = &["api", "access", "secret", "private", "auth", "account"];
/// How tokens of services begin, if they are at least [`SHORTEST`] bytes.
const BEGINNINGS: &[&str] = &[
    "hf_",
    "ghp_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "eyJ",
];
const SHORTEST: usize = 20;

/// The words of a command, with secrets masked.
pub fn command(words: &[String]) -> Vec<String> {
    let mut next_is_secret = false;
    words
        .iter()
        .map(|word| {
            word.split_inclusive(char::is_whitespace)
                .map(|part| masked(part, &mut next_is_secret))
                .collect()
        })
        .collect()
}

/// One word, which white space may follow.
fn masked(part: &str, next_is_secret: &mut bool) -> String {
    let word = part.trim_end();
    let space = &part[word.len()..];
    if word.is_empty() {
        return part.to_owned();
    }
    let is_value = std::mem::take(next_is_secret) && !word.starts_with("--");
    if is_value {
        return format!("{MASK}{space}");
    }
    if let Some((name, value)) = word
        .split_once('=')
        .filter(|(name, _)| !name.contains("://"))
    {
        return match is_secret(name) && !value.is_empty() {
            true => format!("{name}={MASK}{space}"),
            false => format!("{name}={}{space}", without_password(value)),
        };
    }
    let is_flag = word.starts_with('-') && is_secret(word);
    *next_is_secret = is_flag || word.eq_ignore_ascii_case("bearer");
    format!("{}{space}", without_password(word))
}

/// Whether a flag, a variable or a key of a configuration has a secret as its value.
fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches(['-', '+', '"', '\'']);
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.rsplit(['-', '_', '.']);
    match parts.next() {
        Some("key") => parts.next().is_some_and(|before| KEYS.contains(&before)),
        Some(last) => SECRETS.contains(&last),
        None => false,
    }
}

/// A value that has no name: a token by its beginning, a URL with its password masked, anything else as it is.
fn without_password(word: &str) -> String {
    let is_token = word.len() >= SHORTEST && BEGINNINGS.iter().any(|b| word.starts_with(b));
    if is_token {
        return MASK.into();
    }
    let password = || {
        let (scheme, rest) = word.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, host) = authority.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        let after = &rest[authority.len()..];
        Some(format!("{scheme}://{name}:{MASK}@{host}{after}"))
    };
    password().unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(line: &[&str]) -> String {
        let words: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        let once = command(&words);
        assert_eq!(command(&once), once);
        once.join(" ")
    }

    #[test]
    fn secrets_are_masked_and_nothing_else_is() {
        for (line, is) in [
            (
                &["python", "train.py", "--wandb-api-key", "0123", "--lr", "1"][..],
                "python train.py --wandb-api-key *** --lr 1",
            ),
            (&["x", "--hf_token=abc", "-v"], "x --hf_token=*** -v"),
            (
                &["env", "WANDB_API_KEY=abc", "A=b"],
                "env WANDB_API_KEY=*** A=b",
            ),
            (&["x", "logger.password=abc"], "x logger.password=***"),
            (
                &[
                    "bash",
                    "-c",
                    "export HF_TOKEN=abc;  python x --token def --n 3",
                ],
                "bash -c export HF_TOKEN=***  python x --token *** --n 3",
            ),
            (
                &["x", "--url", "s3://me:pass@host/a?b=c", "--db=pg://me:p@h"],
                "x --url s3://me:***@host/a?b=c --db=pg://me:***@h",
            ),
            (
                &["x", "hf_0123456789abcdefghij", "hf_model", "me@host:22"],
                "x *** hf_model me@host:22",
            ),
            (
                &["x", "-H", "Authorization: Bearer abc"],
                "x -H Authorization: Bearer ***",
            ),
            // Not everything that sounds like it.
            (
                &[
                    "x",
                    "--max-tokens",
                    "512",
                    "--tokenizer=t5",
                    "--key",
                    "k",
                    "--author",
                    "me",
                ],
                "x --max-tokens 512 --tokenizer=t5 --key k --author me",
            ),
            (&["x", "--use-token", "--n", "3"], "x --use-token --n 3"),
            (&["x", "--token="], "x --token="),
        ] {
            assert_eq!(told(line), is);
        }
    }

    proptest! {
        #[test]
        fn masking_twice_is_masking_once(words in prop::collection::vec("[-a-zA-Z0-9_=:/@. ]{0,30}", 0..6)) {
            let once = command(&words);
            prop_assert_eq!(once.len(), words.len());
            prop_assert_eq!(&command(&once), &once);
        }
    }
}
