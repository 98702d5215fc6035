package openstack

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
)

var uuidForm = regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z`)

// UUID is the UUID in s as Nova writes it: lower case, with dashes. s may have it in upper
// case, in braces, or without dashes (a machine ID). Empty: s is none.
func UUID(s string) string {
	s = strings.ToLower(strings.Trim(s, "{} "))
	if digits := strings.ReplaceAll(s, "-", ""); len(digits) == 32 {
		s = digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
	}
	if !uuidForm.MatchString(s) {
		return ""
	}
	return s
}

// Addresses are those of a server's ports and the floating ones on them, sorted. The type
// of gophercloud leaves them untyped.
func Addresses(s *servers.Server) []netip.Addr {
	var out []netip.Addr
	for _, network := range s.Addresses {
		list, _ := network.([]any)
		for _, one := range list {
			fields, _ := one.(map[string]any)
			text, _ := fields["addr"].(string)
			if a, err := netip.ParseAddr(text); err == nil {
				out = append(out, a.Unmap().WithZone(""))
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
