package section

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Choice is one flavor of "flavors": it makes a group of its own, so that the scaler picks the
// flavor by what the pods need.
type Choice struct {
	Flavor Words   `json:"flavor"`
	Name   string  `json:"name"` // behind the section's name and a dash; empty: the first flavor's
	Min    int     `json:"min"`
	Max    int     `json:"max"` // 0: the group's
	Price  float64 `json:"price"`
}

// UnmarshalJSON takes a flavor's name, or a mapping.
func (c *Choice) UnmarshalJSON(raw []byte) error {
	type plain Choice
	var one string
	if json.Unmarshal(raw, &one) == nil {
		c.Flavor = Words{one}
		return nil
	}
	return json.Unmarshal(raw, (*plain)(c))
}

// fit makes a flavor's name fit the form of a group's name.
func fit(flavor string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(flavor)), "-.")
}

// group is the group of one flavor, in one zone; empty: in the zones of all.
func (c *Choice) group(of Group, zone string) Group {
	name := c.Name
	if name == "" && len(c.Flavor) > 0 {
		name = fit(c.Flavor[0])
	}
	out := of
	out.Name, out.Flavor, out.Flavors, out.Min, out.Price, out.entry = of.Name+"-"+name, c.Flavor, nil, c.Min, c.Price, of.Name
	if c.Max != 0 {
		out.Max = c.Max
	}
	if zone != "" {
		out.Name, out.Zones = out.Name+"-"+fit(zone), []string{zone}
	}
	return out
}

// mostGroups bounds the groups of flavors in each zone, as those of a pool on AWS.
const mostGroups = 200

// placed is a group with its place in the section, and the place of what a flavor says of it.
type placed struct {
	Group
	at, choice string
}

// nameForm is the error of a name that has not groupForm.
func (p *placed) nameForm() string {
	if p.choice != "" {
		return "%q would be the group's name: name the flavor so that both together have at most 40 small letters, digits, dots and dashes, for example {flavor: m1.large, name: large}"
	}
	return nameForm
}

// place is where a field of the group stands.
func (p *placed) place(field string) string {
	if p.choice != "" && slices.Contains([]string{"name", "flavor", "min", "max", "price"}, field) {
		return p.choice + "." + field
	}
	return p.at + "." + field
}

// groups are the node groups that the section makes: one of each of its groups, or one of each
// flavor in "flavors".
func (s *Section) groups(bad func(at, format string, args ...any)) (out []placed) {
	for i, g := range s.Groups {
		at := fmt.Sprintf("groups[%d]", i)
		if g.Flavors == nil {
			if g.EachZone || g.MaxTotal != 0 {
				bad(at+".flavors", "eachZone and maxTotal are of groups that flavors makes: write flavors in place of flavor")
			}
			out = append(out, placed{Group: g, at: at})
			continue
		}
		g.refuseShared(func(field, format string, args ...any) { bad(at+"."+field, format, args...) })
		if !groupForm.MatchString(g.Name) {
			bad(at+".name", nameForm, g.Name)
			continue
		}
		zones := []string{""}
		if g.EachZone {
			zones = g.Zones
		}
		for j := range g.Flavors {
			for _, zone := range zones {
				out = append(out, placed{Group: g.Flavors[j].group(g, zone), at: at, choice: fmt.Sprintf("%s.flavors[%d]", at, j)})
			}
		}
	}
	return out
}

// refuseShared finds what each flavor has to say for itself.
func (g *Group) refuseShared(bad func(field, format string, args ...any)) {
	if len(g.Flavors) == 0 {
		bad("flavors", "name at least one flavor as `openstack flavor list` shows it, or write flavor: for one group")
	}
	if g.Flavor != nil {
		bad("flavor", "flavors is there too: write flavor for one group, whose servers are of the first flavor that there is room for, or flavors for a group of each flavor")
	}
	if g.Min != 0 {
		bad("min", "%d: each of the flavors would keep so many machines: write the minimum at one flavor, for example flavors: [{flavor: m1.large, min: %d}]", g.Min, g.Min)
	}
	if g.EachZone && (len(g.Zones) == 0 || slices.Contains(g.Zones, "")) {
		bad("zones", "eachZone makes a group of each zone: name them as `openstack availability zone list` shows them")
	}
	if i := slices.IndexFunc(g.Flavors, func(c Choice) bool { return g.EachZone && c.Min != 0 }); i >= 0 {
		bad(fmt.Sprintf("flavors[%d].min", i), "each of the zones would keep so many machines: leave it out")
	}
	if n := len(g.Flavors) * max(1, len(g.Zones)); g.EachZone && n > mostGroups {
		bad("flavors", "%d groups: name fewer flavors or zones, at most %d groups", n, mostGroups)
	}
	if g.MaxTotal < 0 {
		bad("maxTotal", "%d: write how many machines the groups have together at most", g.MaxTotal)
	}
	if g.Price != 0 {
		bad("price", "%g: machines of several flavors have several prices: write the price at each flavor, for example flavors: [{flavor: m1.large, price: %g}]", g.Price, g.Price)
	}
}
