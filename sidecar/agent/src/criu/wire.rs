//! Messages of CRIU's images, walked field by field: what this program does not know stays as it is.

use prost::encoding::{WireType, decode_key, decode_varint};

/// A field: its number, and where it lies with its key and without.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    pub(super) whole: &'a [u8],
    /// The content of a field with a length.
    pub(super) content: &'a [u8],
}

/// The bytes are not a protobuf message.
#[derive(Debug)]
pub(super) struct Malformed;

/// The fields of a message, in their order.
pub(super) fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, Malformed> {
    let mut found = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let start = rest;
        let (number, kind) = decode_key(&mut rest).map_err(|_| Malformed)?;
        let length = match kind {
            WireType::Varint => {
                decode_varint(&mut rest).map_err(|_| Malformed)?;
                0
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest).map_err(|_| Malformed)?;
                usize::try_from(length).map_err(|_| Malformed)?
            }
            WireType::StartGroup | WireType::EndGroup => return Err(Malformed),
        };
        let content;
        (content, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        found.push(Field {
            number,
            whole: &start[..start.len() - rest.len()],
            content,
        });
    }
    Ok(found)
}
