package aws

import (
	"maps"
	"slices"
)

// account is what a person sets up before a group can run: roles, keys, the network
// around the machines. No read of it is ever stale.
type account struct {
	roles    map[string]*Role
	profiles map[string]*InstanceProfile
	keys     map[string]string // public keys by name
	security map[string]*SecurityGroup
	nics     map[string]*NetworkInterface
	addrs    map[string]*Address
	images   map[string]string // that exist although no launch template names them: architecture by ID
	next     int               // last byte of the next Elastic IP address
}

func newAccount() *account {
	return &account{
		roles: map[string]*Role{}, profiles: map[string]*InstanceProfile{}, keys: map[string]string{},
		security: map[string]*SecurityGroup{}, nics: map[string]*NetworkInterface{}, addrs: map[string]*Address{},
	}
}

// Role is an IAM role.
type Role struct {
	Name, Trust string            // Trust is the JSON of its trust policy
	Inline      map[string]string // policy documents by name
	Attached    []string          // ARNs of managed policies
	Tags        map[string]string
}

// InstanceProfile is an IAM instance profile with at most one role.
type InstanceProfile struct{ Name, Role string }

// SecurityGroup is a security group; its ID is made of its name.
type SecurityGroup struct {
	ID, Name, Description string
	Ingress               []SecurityRule
	Tags                  map[string]string
}

// SecurityRule lets traffic in from a network or from the members of a group.
type SecurityRule struct {
	Protocol    string // tcp, udp, -1
	From, To    int
	CIDR, Group string // one of the two; Group is an ID
}

// NetworkInterface is one that was made apart from an instance and may outlive it.
type NetworkInterface struct {
	ID, Zone, PrivateIP string
	IPv6                string   // "" without one
	Groups              []string // security groups' IDs
	Instance            string   // "" while it is attached to none
	Tags                map[string]string
}

// Address is an Elastic IP address.
type Address struct {
	ID, PublicIP, Interface string // Interface is "" while it is associated with none
	Tags                    map[string]string
}

// Account is a copy of what was set up through IAM's and EC2's APIs, by name where there
// is one, else in the order of IDs.
type Account struct {
	Roles          map[string]Role
	Profiles       map[string]InstanceProfile
	Keys           map[string]string
	SecurityGroups map[string]SecurityGroup // by name
	Interfaces     []NetworkInterface
	Addresses      []Address
}

// Account returns what is there now.
func (c *Cloud) Account() Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := Account{Roles: map[string]Role{}, Profiles: map[string]InstanceProfile{}, Keys: maps.Clone(c.account.keys), SecurityGroups: map[string]SecurityGroup{}}
	for name, r := range c.account.roles {
		a.Roles[name] = Role{r.Name, r.Trust, maps.Clone(r.Inline), slices.Clone(r.Attached), maps.Clone(r.Tags)}
	}
	for name, p := range c.account.profiles {
		a.Profiles[name] = *p
	}
	for _, g := range c.account.security {
		a.SecurityGroups[g.Name] = SecurityGroup{g.ID, g.Name, g.Description, slices.Clone(g.Ingress), maps.Clone(g.Tags)}
	}
	for _, id := range sortedKeys(c.account.nics) {
		n := *c.account.nics[id]
		n.Groups, n.Tags = slices.Clone(n.Groups), maps.Clone(n.Tags)
		a.Interfaces = append(a.Interfaces, n)
	}
	for _, id := range sortedKeys(c.account.addrs) {
		n := *c.account.addrs[id]
		n.Tags = maps.Clone(n.Tags)
		a.Addresses = append(a.Addresses, n)
	}
	return a
}

// PutImage makes an image of an architecture ("x86_64", "arm64") exist that no launch template names.
func (c *Cloud) PutImage(id, architecture string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.account.images == nil {
		c.account.images = map[string]string{}
	}
	c.account.images[id] = architecture
}

// specified reads the tags that a call gives a new resource of a kind.
func (r *request) specified(kind string) (map[string]string, *apiError) {
	tags := map[string]string{}
	for _, s := range r.p.list("TagSpecification") {
		if got := s.str("ResourceType"); got != kind && kind != "" {
			return nil, fail("InvalidParameterValue", "'"+got+"' is not a valid taggable resource type for this operation.")
		}
		for _, t := range s.list("Tag") {
			tags[t.str("Key")] = t.str("Value")
		}
	}
	return tags, nil
}

func tagSet(tags map[string]string) el {
	return each("tagSet", "item", sortedKeys(tags), func(k string) []el { return []el{x("key", k), x("value", tags[k])} })
}

// keep says whether all filters of a Describe call hold for tags and values.
func (r *request) keep(tags map[string]string, values map[string]string) (bool, *apiError) {
	for _, f := range filters(r.p, "Filter", "Value") {
		if match, ok := f.tags(tags); ok {
			if !match {
				return false, nil
			}
			continue
		}
		v, known := values[f.name]
		if !known {
			return false, badFilter(f.name)
		}
		if !f.any(v) {
			return false, nil
		}
	}
	return true, nil
}
