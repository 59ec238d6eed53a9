//! What the simulation needs to know about a PTX text: entries with the layout of their parameters, and globals.

/// A kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    pub offset: usize,
    pub size: usize,
}

/// An `.entry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub params: Vec<Param>,
    pub bytes: usize,
}

/// A module-level `.global` or `.const` variable, with what it starts as (the rest is zeroes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    pub name: String,
    pub size: usize,
    pub start: Vec<u8>,
}

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub entries: Vec<Entry>,
    pub globals: Vec<Global>,
}

/// Reads a PTX text; None when it is none.
pub fn parse(text: &str) -> Option<Image> {
    let text = without_comments(text);
    if !text.contains(".version") || !text.contains(".target") {
        return None;
    }
    let mut image = Image::default();
    for statement in statements(&text) {
        if statement.split_whitespace().any(|word| word == ".entry") {
            image.entries.push(entry(&statement)?);
        } else if statement
            .split_whitespace()
            .any(|word| matches!(word, ".global" | ".const"))
        {
            image.globals.extend(global(&statement));
        }
    }
    Some(image)
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        if tail.starts_with("//") {
            rest = tail.find('\n').map_or("", |end| &tail[end..]);
        } else if tail.starts_with("/*") {
            rest = tail.find("*/").map_or("", |end| &tail[end + 2..]);
            out.push(' ');
        } else {
            out.push('/');
            rest = &tail[1..];
        }
    }
    out.push_str(rest);
    out
}

/// The statements at module level, without function bodies.
fn statements(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut current = String::new();
    let mut depth = 0_usize;
    for line in text.lines() {
        let directive = line.trim_start();
        if depth == 0
            && current.trim().is_empty()
            && [".version", ".target", ".address_size", ".file"]
                .iter()
                .any(|known| directive.starts_with(known))
        {
            continue;
        }
        for letter in line.chars().chain(['\n']) {
            match letter {
                '{' => {
                    depth += 1;
                    if depth == 1 {
                        current.push('{');
                    }
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    let body = current.contains(".entry")
                        || current.contains(".func")
                        || current.contains(".section");
                    if depth == 0 && body {
                        out.push(std::mem::take(&mut current));
                    } else if depth == 0 {
                        current.push('}');
                    }
                }
                ';' if depth == 0 => out.push(std::mem::take(&mut current)),
                _ if depth == 0 || !(current.contains(".entry") || current.contains(".func")) => {
                    current.push(letter)
                }
                _ => {}
            }
        }
    }
    out
}

fn entry(statement: &str) -> Option<Entry> {
    let after = statement.split(".entry").nth(1)?;
    let name_end = after.find(['(', '{']).unwrap_or(after.len());
    let name = after[..name_end].split_whitespace().next()?.to_owned();
    let mut params = Vec::new();
    let mut bytes = 0_usize;
    if after[name_end..].starts_with('(') {
        let list = after[name_end + 1..].split(')').next()?;
        for param in list.split(',').filter(|param| !param.trim().is_empty()) {
            let (size, align) = layout(param)?;
            let offset = bytes.next_multiple_of(align);
            params.push(Param { offset, size });
            bytes = offset + size;
        }
    }
    Some(Entry {
        name,
        params,
        bytes,
    })
}

/// Bytes and alignment of a declaration such as `.param .align 8 .b8 name[16]`.
fn layout(declaration: &str) -> Option<(usize, usize)> {
    let mut words = declaration.split_whitespace();
    let mut align = None;
    let mut unit = None;
    let mut pointer = false;
    while let Some(word) = words.next() {
        match word {
            ".ptr" => pointer = true,
            ".align" => {
                let value = words.next()?.parse::<usize>().ok()?;
                // After `.ptr` it is the pointee's alignment.
                if !pointer {
                    align = Some(value);
                }
            }
            _ => unit = unit.or_else(|| unit_size(word)),
        }
    }
    let unit = unit?;
    let count: usize = match (declaration.find('['), declaration.find(']')) {
        (Some(open), Some(close)) if close > open => {
            declaration[open + 1..close].trim().parse().unwrap_or(1)
        }
        _ => 1,
    };
    Some((unit * count, align.unwrap_or(unit).max(1)))
}

fn unit_size(word: &str) -> Option<usize> {
    Some(match word {
        ".b8" | ".u8" | ".s8" | ".pred" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

fn global(statement: &str) -> Option<Global> {
    if statement.contains(".extern") {
        return None;
    }
    let (declaration, start) = statement.split_once('=').unwrap_or((statement, ""));
    let (size, _) = layout(declaration)?;
    let unit = declaration.split_whitespace().find_map(unit_size)?;
    let name = declaration
        .split('[')
        .next()?
        .split_whitespace()
        .last()?
        .to_owned();
    let bytes = start
        .trim_matches(|c: char| c.is_whitespace() || c == '{' || c == '}')
        .split(',')
        .filter_map(number);
    let start = bytes
        .flat_map(|value| value.to_le_bytes().into_iter().take(unit))
        .collect();
    Some(Global { name, size, start })
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(hex) = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0f"))
        .or_else(|| text.strip_prefix("0F"))
    {
        return u64::from_str_radix(hex, 16).ok();
    }
    text.parse::<i64>()
        .ok()
        .map(|value| value as u64)
        .or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        .version 8.0 // of PTX
        .target sm_90
        .address_size 64
        .visible .global .align 4 .u32 counter = 7;
        .global .align 16 .b8 table[8] = {1, 2, 0x3};
        .visible .entry first(
            .param .u64 .ptr .global .align 16 first_param_0,
            .param .u32 first_param_1,
            .param .align 8 .b8 first_param_2[24]
        )
        .maxntid 256, 1, 1
        {
            .reg .pred %p<2>;
            ld.global.u32 %r1, [counter]; { inner; }
            ret;
        }
        .func helper() { ret; }
        .visible .entry second() { ret; }
    ";

    #[test]
    fn reads_entries_and_globals() {
        let image = parse(TEXT).unwrap_or_default();
        let offsets = |entry: &Entry| {
            entry
                .params
                .iter()
                .map(|p| (p.offset, p.size))
                .collect::<Vec<_>>()
        };
        assert_eq!(image.entries.len(), 2);
        assert_eq!(image.entries[0].name, "first");
        assert_eq!(offsets(&image.entries[0]), [(0, 8), (8, 4), (16, 24)]);
        assert_eq!(image.entries[0].bytes, 40);
        assert_eq!(
            (image.entries[1].name.as_str(), image.entries[1].bytes),
            ("second", 0)
        );
        assert_eq!(
            image.globals[0],
            Global {
                name: "counter".into(),
                size: 4,
                start: vec![7, 0, 0, 0]
            }
        );
        assert_eq!(
            image.globals[1],
            Global {
                name: "table".into(),
                size: 8,
                start: vec![1, 2, 3]
            }
        );
        assert_eq!(parse("not PTX"), None);
    }
}
