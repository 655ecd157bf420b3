//! Which addresses a download may go to: those of the public web, and private ones where the source says so.
//!
//! Link-local addresses and those under which clouds answer with credentials are never asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds hand out credentials outside of the link-local range.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// What kind of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Public,
    /// Of this pod, cluster or company.
    Private,
    /// Nobody's business.
    Never,
}

/// Why a download may not go to this address, if it may not.
pub(super) fn refusal(address: IpAddr, allow_private: bool) -> Option<&'static str> {
    match reach(address) {
        Reach::Public => None,
        Reach::Private if allow_private => None,
        Reach::Private => Some("is private: set allowPrivate of the source if that is meant"),
        Reach::Never => {
            Some("is link-local, multicast, reserved or of a cloud's metadata service, which nobody may ask for")
        }
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&address) {
        return Reach::Never;
    }
    match address.octets() {
        [10 | 127, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Reach::Private,
        // This network, link-local, of protocols and documents, of benchmarks, multicast, reserved and broadcast.
        [0 | 224..=255, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Reach::Never,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if address == METADATA_V6 {
        return Reach::Never;
    }
    let inner = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // An address of IPv4 in other clothes is what it is inside: mapped, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            inner(high, low)
        }
        [first, ..] if first & 0xfe00 == 0xfc00 => Reach::Private,
        // Documents and Teredo.
        [0x2001, 0xdb8 | 0, ..] => Reach::Never,
        // All that is given out to the public.
        [first, ..] if first & 0xe000 == 0x2000 => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reaches(address: &str) -> Reach {
        reach(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_public_private_or_nobodys_business() {
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8", "2002:808:808::1"] {
            assert_eq!(reaches(address), Reach::Public, "{address}");
        }
        for address in [
            "10.0.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "192.168.1.1",
            "172.16.0.1",
            "172.31.255.255",
            "100.64.0.1",
            "::1",
            "fc00::1",
            "fd12::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:0a00:0001::1",
        ] {
            assert_eq!(reaches(address), Reach::Private, "{address}");
        }
        for address in [
            "0.0.0.0",
            "169.254.169.254",
            "169.254.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "198.18.0.1",
            "203.0.113.5",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "::",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
            "fec0::1",
        ] {
            assert_eq!(reaches(address), Reach::Never, "{address}");
        }
    }

    #[test]
    fn a_private_address_needs_the_word_of_its_source() {
        let address = "10.0.0.1".parse().unwrap();
        assert_eq!(refusal(address, false), Some("is private: set allowPrivate of the source if that is meant"));
        assert_eq!(refusal(address, true), None);
        assert!(refusal("169.254.169.254".parse().unwrap(), true).is_some());
    }

    proptest! {
        #[test]
        fn an_address_in_other_clothes_is_not_more_public(bits: u32) {
            let plain = Ipv4Addr::from(bits);
            prop_assert_eq!(reach(IpAddr::V6(plain.to_ipv6_mapped())), reach(IpAddr::V4(plain)));
        }
    }
}
