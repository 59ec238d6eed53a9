//! Sizes on the command line (`4GiB`, `500MB`, `65536`) and in messages.
//!
//! Not by `bytesize`: it reads `1k` as 1000 bytes, computes in floating point and saturates, where a size here is exact or refused.

/// Why a size was refused: the text that was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size: write a number with a unit, as in 4GiB, 512MiB or 10GB")]
pub struct SizeError(String);

/// Reads a size.
///
/// # Errors
/// It is not one.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let bad = || SizeError(text.to_owned());
    let digits = text.trim();
    let split = digits
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(digits.len());
    let (number, unit) = digits.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" | "ki" => 1 << 10,
        "m" | "mib" | "mi" => 1 << 20,
        "g" | "gib" | "gi" => 1 << 30,
        "t" | "tib" | "ti" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(bad()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(bad);
    }
    let number: f64 = number.parse().map_err(|_| bad())?;
    let bytes = number * factor as f64;
    if bytes.is_finite() && (0.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(bad())
    }
}

/// Writes a size for people.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", 0)]
    #[case("65536", 65536)]
    #[case("4GiB", 4 << 30)]
    #[case("4g", 4 << 30)]
    #[case("1.5 MiB", 3 << 19)]
    #[case("10GB", 10_000_000_000)]
    fn sizes(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(parse(text), Ok(bytes));
    }

    #[rstest]
    #[case("")]
    #[case("-1")]
    #[case("GiB")]
    #[case("4 GiBit")]
    #[case("1e9")]
    #[case("99999999999TiB")]
    fn not_sizes(#[case] text: &str) {
        assert_eq!(
            parse(text).unwrap_err().to_string(),
            format!(
                "{text:?} is not a size: write a number with a unit, as in 4GiB, 512MiB or 10GB"
            )
        );
    }

    #[test]
    fn for_people() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(39_200_000_000), "36.5 GiB");
        assert_eq!(human(500 << 20), "500 MiB");
    }
}
