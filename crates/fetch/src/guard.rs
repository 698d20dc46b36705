use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses a request may connect to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressPolicy {
    /// Only addresses of the public internet.
    #[default]
    Public,
    /// Also loopback, private and similar addresses: for sites that the operator has explicitly
    /// allowed. Link-local, cloud metadata, multicast, unspecified and reserved addresses stay
    /// refused: they have no websites, but a cloud's credentials are there.
    AllowPrivate,
}

impl AddressPolicy {
    /// Public addresses, and private ones if they are allowed.
    pub fn private_if(allowed: bool) -> Self {
        if allowed { Self::AllowPrivate } else { Self::Public }
    }
}

/// The kind of an address, as far as the guard needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// An address of the public internet.
    Public,
    /// The machine itself.
    Loopback,
    /// A private network (RFC 1918, IPv6 unique local, IPv6 site-local, local NAT64).
    Private,
    /// Carrier-grade NAT, 100.64.0.0/10.
    CarrierNat,
    /// Benchmarking networks.
    Benchmarking,
    /// Addresses for documentation.
    Documentation,
    /// One link only: 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// A cloud's metadata service, which gives credentials to anyone who can reach it.
    Metadata,
    /// Multicast.
    Multicast,
    /// "This network": 0.0.0.0/8 and `::`.
    Unspecified,
    /// Everything else that no website can have.
    Reserved,
}

impl AddressKind {
    /// The kind of an address. An IPv6 address that wraps an IPv4 address (mapped, compatible,
    /// NAT64, 6to4, Teredo) has the kind of the wrapped one.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => of_v6(v6),
        }
    }

    /// Whether a request under this policy may connect to such an address.
    pub fn permitted(self, policy: AddressPolicy) -> bool {
        match self {
            Self::Public => true,
            Self::Loopback
            | Self::Private
            | Self::CarrierNat
            | Self::Benchmarking
            | Self::Documentation => policy == AddressPolicy::AllowPrivate,
            Self::LinkLocal
            | Self::Metadata
            | Self::Multicast
            | Self::Unspecified
            | Self::Reserved => false,
        }
    }
}

/// Filters the addresses of a name: those that may be tried, in the same order, or the first
/// refused one if none may.
pub(crate) fn permitted(
    addresses: &[IpAddr],
    policy: AddressPolicy,
) -> Result<Vec<IpAddr>, Option<IpAddr>> {
    let good: Vec<IpAddr> =
        addresses.iter().copied().filter(|a| AddressKind::of(*a).permitted(policy)).collect();
    if good.is_empty() { Err(addresses.first().copied()) } else { Ok(good) }
}

/// Metadata services in ranges that a site may be allowed to use. (Most clouds use 169.254.169.254,
/// which is link-local.)
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// The kind by the IANA registry of special-purpose IPv4 addresses.
fn of_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Metadata;
    }
    match address.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::CarrierNat,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Documentation,
        [198, 18..=19, ..] => AddressKind::Benchmarking,
        // IETF protocol assignments, and the former 6to4 relays.
        [192, 0, 0, _] | [192, 88, 99, _] => AddressKind::Reserved,
        [224..=239, ..] => AddressKind::Multicast,
        [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

/// The kind by the IANA registry of special-purpose IPv6 addresses; only 2000::/3 is assigned at
/// all.
fn of_v6(address: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&address) {
        return AddressKind::Metadata;
    }
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // IPv4-compatible, IPv4-mapped, and NAT64's well-known prefix.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            of_v4(v4(high, low))
        }
        [0x64, 0xff9b, 1, ..] => AddressKind::Private,
        // Teredo addresses contain the server's address, and the client's with every bit inverted.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            worse(of_v4(v4(server_high, server_low)), of_v4(v4(!high, !low)))
        }
        [0x2001, 2, 0, ..] => AddressKind::Benchmarking,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressKind::Documentation,
        // The other IETF protocol assignments, 2001::/23.
        [0x2001, 0..=0x01ff, ..] => AddressKind::Reserved,
        [0x2002, high, low, ..] => of_v4(v4(high, low)),
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        _ => AddressKind::Reserved,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

/// Of two kinds, the one that fewer policies permit.
fn worse(a: AddressKind, b: AddressKind) -> AddressKind {
    let permits = |kind: AddressKind| {
        [AddressPolicy::Public, AddressPolicy::AllowPrivate]
            .into_iter()
            .filter(|policy| kind.permitted(*policy))
            .count()
    };
    if permits(a) <= permits(b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AddressKind::*;
    use nenrin_urls::CanonicalUrl;

    #[rustfmt::skip]
    const TABLE: &[(&str, AddressKind)] = &[
        // Public.
        ("1.1.1.1", Public), ("8.8.8.8", Public), ("93.184.216.34", Public),
        ("9.255.255.255", Public), ("11.0.0.0", Public), ("100.63.255.255", Public),
        ("100.128.0.0", Public), ("126.255.255.255", Public), ("128.0.0.0", Public),
        ("169.253.255.255", Public), ("169.255.0.0", Public), ("172.15.255.255", Public),
        ("172.32.0.0", Public), ("192.0.1.0", Public), ("192.167.255.255", Public),
        ("192.169.0.0", Public), ("198.17.255.255", Public), ("198.20.0.0", Public),
        ("223.255.255.255", Public),
        ("2606:4700:4700::1111", Public), ("2001:4860:4860::8888", Public),
        ("2001:200::1", Public), ("2400:cb00::1", Public),
        // Never on the public internet.
        ("0.0.0.0", Unspecified), ("0.1.2.3", Unspecified),
        ("127.0.0.1", Loopback), ("127.255.255.254", Loopback),
        ("10.0.0.1", Private), ("10.255.255.255", Private),
        ("172.16.0.1", Private), ("172.31.255.255", Private),
        ("192.168.0.1", Private), ("192.168.255.255", Private),
        ("100.64.0.1", CarrierNat), ("100.127.255.255", CarrierNat),
        ("169.254.0.1", LinkLocal), ("169.254.169.254", LinkLocal),
        ("100.100.100.200", Metadata), ("168.63.129.16", Metadata), ("192.0.0.192", Metadata),
        ("192.0.0.8", Reserved), ("192.88.99.1", Reserved),
        ("192.0.2.1", Documentation), ("198.51.100.7", Documentation), ("203.0.113.9", Documentation),
        ("198.18.0.1", Benchmarking), ("198.19.255.255", Benchmarking),
        ("224.0.0.1", Multicast), ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved), ("255.255.255.255", Reserved),
        ("::", Unspecified), ("::1", Loopback), ("::2", Unspecified),
        ("fc00::1", Private), ("fd12:3456::1", Private), ("fec0::1", Private),
        ("fd00:ec2::254", Metadata), ("fd20:ce::254", Metadata),
        ("fe80::1", LinkLocal), ("febf::1", LinkLocal),
        ("ff02::1", Multicast), ("ff0e::1", Multicast),
        ("2001:db8::1", Documentation), ("3fff::1", Documentation),
        ("2001:2::1", Benchmarking), ("2001:10::1", Reserved), ("2001:20::1", Reserved),
        ("100::1", Reserved), ("5f00::1", Reserved), ("4000::1", Reserved), ("::ffff:0:7f00:1", Reserved),
        // IPv4 inside IPv6.
        ("::ffff:127.0.0.1", Loopback), ("::ffff:10.1.2.3", Private), ("::ffff:8.8.8.8", Public),
        ("::ffff:169.254.169.254", LinkLocal), ("::ffff:0.0.0.0", Unspecified),
        ("::127.0.0.1", Loopback), ("::192.168.1.1", Private), ("::8.8.8.8", Public),
        ("64:ff9b::127.0.0.1", Loopback), ("64:ff9b::10.0.0.1", Private), ("64:ff9b::8.8.8.8", Public),
        ("64:ff9b:1::8.8.8.8", Private),
        ("2002:7f00:1::", Loopback), ("2002:c0a8:101::1", Private), ("2002:808:808::1", Public),
        // Teredo: server 8.8.8.8 with client 127.0.0.1, both public, server 10.0.0.1.
        ("2001:0:808:808:0:0:80ff:fffe", Loopback), ("2001:0:808:808:0:0:f7f7:f7f7", Public),
        ("2001:0:a00:1:0:0:f7f7:f7f7", Private),
    ];

    #[test]
    fn every_address_of_the_table_has_its_kind() {
        for (text, kind) in TABLE {
            assert_eq!(AddressKind::of(text.parse().unwrap()), *kind, "{text}");
        }
    }

    #[test]
    fn the_public_policy_permits_public_addresses_only() {
        for (text, kind) in TABLE {
            let address: IpAddr = text.parse().unwrap();
            let permitted = permitted(&[address], AddressPolicy::Public).is_ok();
            assert_eq!(permitted, *kind == Public, "{text}");
        }
    }

    #[test]
    fn allowing_private_addresses_does_not_allow_all() {
        for (text, permitted) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("10.0.0.1", true),
            ("fd12::1", true),
            ("100.64.0.1", true),
            ("8.8.8.8", true),
            ("0.0.0.0", false),
            ("::", false),
            ("169.254.169.254", false),
            ("100.100.100.200", false),
            ("224.0.0.1", false),
            ("::ffff:224.0.0.1", false),
            ("255.255.255.255", false),
            ("ff02::1", false),
            ("fe80::1", false),
        ] {
            let kind = AddressKind::of(text.parse().unwrap());
            assert_eq!(kind.permitted(AddressPolicy::AllowPrivate), permitted, "{text}");
        }
    }

    #[test]
    fn only_the_public_ones_of_several_addresses_are_kept() {
        let addresses: Vec<IpAddr> = ["127.0.0.1", "8.8.8.8", "10.0.0.1", "2606:4700:4700::1111"]
            .map(|a| a.parse().unwrap())
            .to_vec();
        assert_eq!(
            permitted(&addresses, AddressPolicy::Public).unwrap(),
            [addresses[1], addresses[3]]
        );
        assert_eq!(permitted(&addresses[..1], AddressPolicy::Public), Err(Some(addresses[0])));
        assert_eq!(permitted(&[], AddressPolicy::Public), Err(None));
    }

    #[test]
    fn odd_spellings_of_an_address_in_a_url_mean_the_same_address() {
        for host in [
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "[::ffff:7f00:1]",
            "[0:0::0:1]",
        ] {
            let url = CanonicalUrl::parse(&format!("http://{host}/")).unwrap();
            let address: IpAddr = match url.as_url().host() {
                Some(url::Host::Ipv4(v4)) => v4.into(),
                Some(url::Host::Ipv6(v6)) => v6.into(),
                other => panic!("{host} was taken for {other:?}"),
            };
            assert_eq!(AddressKind::of(address), Loopback, "{host}");
        }
    }
}
