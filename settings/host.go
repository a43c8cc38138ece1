package settings

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// notPublic4 are the IPv4 ranges that IANA keeps for special purposes: https://www.iana.org/assignments/iana-ipv4-special-registry
var notPublic4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")

// public6 is the space that IPv6 addresses are given out from, and notPublic6 the special ranges in it:
// https://www.iana.org/assignments/iana-ipv6-special-registry
var (
	public6    = netip.MustParsePrefix("2000::/3")
	notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)

func prefixes(all ...string) (parsed []netip.Prefix) {
	for _, each := range all {
		parsed = append(parsed, netip.MustParsePrefix(each))
	}
	return parsed
}

// notPublicDomains are names that no public DNS server answers for.
var notPublicDomains = []string{
	"local", "localhost", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "test", "invalid", "example", "onion", "alt", "arpa",
}

// publicHost reports whether a host of a URL may be found from the internet, by the form of its name or address.
func publicHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return publicAddress(address)
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && !isNumber(last) && !slices.Contains(notPublicDomains, last)
}

func publicAddress(address netip.Addr) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	special := notPublic4
	if address.Is6() {
		if special = notPublic6; !public6.Contains(address) {
			return false
		}
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(address) })
}

// isLabel reports whether a part of a host name is one in DNS. Other scripts are written in their ASCII form, xn--….
func isLabel(label string) bool {
	return label != "" && len(label) <= 63 && strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		!strings.HasPrefix(label, "-") && !strings.HasSuffix(label, "-")
}

// isNumber reports whether a host name that ends in this label is read as an IPv4 address by many programs:
// 0x7f.1 and 2130706433 are 127.0.0.1.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// privateByName reports whether a URL's host is this machine, or a name of one word, which only a private network has:
// a service of Docker Compose, for example.
func privateByName(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return Loopback(host) || isLabel(host) && !isNumber(host)
}

// Loopback reports whether a host of a URL is this machine.
func Loopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
