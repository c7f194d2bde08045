//! Network addresses: the texts of `inet` and `cidr`. Both are kept and compared as they are
//! written, because columns and literals of these types are texts to the engine.

use std::net::IpAddr;

/// Whether a text is an `inet`: an IP address, possibly with the number of bits of its network.
pub(crate) fn is_address(text: &str) -> bool {
    parsed(text).is_some()
}

/// Whether a text is a `cidr`: an address without bits behind those of its network. `None` if it is
/// no address at all.
pub(crate) fn is_network(text: &str) -> Option<bool> {
    let (ip, bits) = parsed(text)?;
    let behind = match ip {
        IpAddr::V4(ip) => u32::from(ip).checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(ip) => u128::from(ip).checked_shl(bits.into()).unwrap_or(0) != 0,
    };
    Some(!behind)
}

/// The address, and the number of bits of its network.
fn parsed(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = match text.split_once('/') {
        Some((ip, bits)) => (ip, Some(bits)),
        None => (text, None),
    };
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let Some(bits) = bits else { return Some((ip, most)) };
    let is_number = bits.bytes().all(|digit| digit.is_ascii_digit());
    let bits = bits.parse::<u8>().ok().filter(|bits| is_number && *bits <= most)?;
    Some((ip, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_all_their_parts() {
        for text in ["10.0.0.1", "10.0.0.1/32", "10.0.0.1/0", "0:0:0:0:0:0:0:1", "2001:DB8::/32", "::1/128"] {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "x", "10.0.0", "10.0.0.256", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/+8", "::1/129"] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn networks_have_no_bits_behind_theirs() {
        for text in ["10.0.0.0/8", "10.0.0.1", "10.0.0.1/32", "0.0.0.0/0", "::/0", "::1", "2001:db8::/32"] {
            assert_eq!(is_network(text), Some(true), "{text}");
        }
        for text in ["10.0.0.1/8", "10.0.0.1/31", "0.0.0.1/0", "2001:db8::1/32", "::1/127"] {
            assert_eq!(is_network(text), Some(false), "{text}");
        }
        assert_eq!(is_network("x"), None);
    }
}
