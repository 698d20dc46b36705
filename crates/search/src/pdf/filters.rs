//! Unpacks the bytes of streams, never more than is allowed.

use std::io::Read;

use super::syntax::is_space;

/// Unpacks bytes by one filter; what comes before damage counts. `None` if the filter is unknown,
/// as those of pictures are.
pub(super) fn unpack(filter: &[u8], packed: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    match filter {
        b"FlateDecode" | b"Fl" => Some(inflate(packed, max_bytes)),
        b"LZWDecode" | b"LZW" => Some(lzw(packed, max_bytes)),
        b"ASCII85Decode" | b"A85" => Some(ascii85(packed, max_bytes)),
        b"ASCIIHexDecode" | b"AHx" => Some(hexadecimal(packed, max_bytes)),
        b"RunLengthDecode" | b"RL" => Some(run_lengths(packed, max_bytes)),
        _ => None,
    }
}

fn inflate(packed: &[u8], max_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error is kept.
    let _ = flate2::read::ZlibDecoder::new(packed).take(max_bytes as u64).read_to_end(&mut bytes);
    bytes
}

fn lzw(packed: &[u8], max_bytes: usize) -> Vec<u8> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut bytes: Vec<u8> = Vec::new();
    // Each entry is a stretch of what was written.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut bits, mut count, mut width) = (0_u32, 0, 9);
    for &byte in packed {
        bits = bits << 8 | u32::from(byte);
        count += 8;
        if count < width {
            continue;
        }
        let code = (bits >> (count - width)) as usize & ((1 << width) - 1);
        count -= width;
        bits &= (1 << count) - 1;
        let start = bytes.len();
        match (code, last) {
            (CLEAR, _) => {
                table.clear();
                (last, width) = (None, 9);
                continue;
            }
            (END, _) => break,
            (0..CLEAR, _) => bytes.push(code as u8),
            _ => {
                let known = table.get(code - 258).copied();
                let Some((from, length)) = known.or(last.map(|(from, length)| (from, length + 1)))
                else {
                    break;
                };
                if length > max_bytes.saturating_sub(start) {
                    break;
                }
                // The stretch may reach into itself.
                for at in from..from + length {
                    let byte = bytes[at];
                    bytes.push(byte);
                }
            }
        }
        if let Some((from, length)) = last
            && table.len() < 4096 - 258
        {
            table.push((from, length + 1));
        }
        last = Some((start, bytes.len() - start));
        width = match table.len() + 259 {
            0..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
        if bytes.len() >= max_bytes {
            break;
        }
    }
    bytes
}

fn ascii85(packed: &[u8], max_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut group = Vec::with_capacity(5);
    let flush = |group: &mut Vec<u8>, bytes: &mut Vec<u8>| {
        let length = group.len();
        if length > 1 {
            group.resize(5, 84);
            let sum = |sum: u32, digit: &u8| sum.wrapping_mul(85).wrapping_add(u32::from(*digit));
            bytes.extend(&group.iter().fold(0, sum).to_be_bytes()[..length - 1]);
        }
        group.clear();
    };
    for &byte in packed {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => bytes.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => continue,
        }
        if group.len() == 5 {
            flush(&mut group, &mut bytes);
        }
        if bytes.len() >= max_bytes {
            return bytes;
        }
    }
    flush(&mut group, &mut bytes);
    bytes
}

fn hexadecimal(packed: &[u8], max_bytes: usize) -> Vec<u8> {
    let digits: Vec<u8> = packed
        .iter()
        .take_while(|byte| **byte != b'>')
        .filter(|byte| !is_space(**byte))
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let pair = |pair: &[u8]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    digits.chunks(2).map(pair).take(max_bytes).collect()
}

fn run_lengths(packed: &[u8], max_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = packed;
    while let [length, after @ ..] = rest {
        let length = usize::from(*length);
        match (length, after) {
            (128, _) => break,
            (0..128, _) => {
                let (plain, after) = after.split_at(after.len().min(length + 1));
                bytes.extend(plain);
                rest = after;
            }
            (_, [byte, after @ ..]) => {
                bytes.resize(bytes.len() + 257 - length, *byte);
                rest = after;
            }
            _ => break,
        }
        if bytes.len() >= max_bytes {
            break;
        }
    }
    bytes
}
