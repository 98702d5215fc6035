// Package section reads the section "nova" of groups.yaml: the clouds, and the node groups
// of which Nova itself knows nothing. Parse is its only entry.
//
// It refuses unknown fields and every value that Nova or Neutron would refuse later, with
// the place of the mistake and what to write instead. It makes no request: whether a flavor,
// an image or a network exists is not its concern.
package section

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/strict"
	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

// Section is the section "nova" of groups.yaml.
type Section struct {
	Cluster string `json:"cluster"`
	// DHCPDomain is Nova's [api]dhcp_domain, of every cloud that names no other: the host
	// names of servers end with it, and Nodes may be called so.
	DHCPDomain string  `json:"dhcpDomain"`
	Clouds     []Cloud `json:"clouds"`
	Groups     []Group `json:"groups"`
}

// Cloud is one region of one OpenStack. Without any there is one, as AUTOSCALER_OPENSTACK_*
// and the OS_* variables define it.
type Cloud struct {
	Name   string `json:"name"`   // by which groups speak of it
	Cloud  string `json:"cloud"`  // in clouds.yaml; empty: that of AUTOSCALER_OPENSTACK_CLOUD and OS_*
	Region string `json:"region"` // empty: that of the credentials
	// ProviderIDRegion makes provider IDs openstack://region/uuid, as the cloud controller
	// manager writes them if it is configured so.
	ProviderIDRegion bool   `json:"providerIDRegion"`
	DHCPDomain       string `json:"dhcpDomain"` // empty: the section's, else novalocal
}

// Group is one node group.
type Group struct {
	Name           string            `json:"name"`
	Cloud          string            `json:"cloud"`
	Flavor         Words             `json:"flavor"`   // the first that there is room for
	Flavors        []Choice          `json:"flavors"`  // a group of each; nil once Parse has made these groups
	EachZone       bool              `json:"eachZone"` // and of each of the zones
	MaxTotal       int               `json:"maxTotal"` // of these groups together; 0: none
	Image          string            `json:"image"`
	Networks       []Network         `json:"networks"`
	SecurityGroups []string          `json:"securityGroups"`
	Key            string            `json:"key"`
	Zones          []string          `json:"zones"`
	ServerGroup    string            `json:"serverGroup"` // a policy, or the ID of one that is there
	BootVolume     *Volume           `json:"bootVolume"`
	FloatingIP     string            `json:"floatingIP"` // the external network
	ConfigDrive    bool              `json:"configDrive"`
	Metadata       map[string]string `json:"metadata"`
	Labels         map[string]string `json:"labels"`
	Taints         []Taint           `json:"taints"`
	Min            int               `json:"min"`
	Max            int               `json:"max"`
	Price          float64           `json:"price"`
	UserData       string            `json:"userdata"` // a file
	Arch           string            `json:"arch"`
	entry          string            // name of the group whose flavors made this one
}

// Pool names the groups that one list of flavors made, and the most machines that they have together; empty: nothing bounds them together.
func (g *Group) Pool() (name string, max int) {
	if g.MaxTotal == 0 {
		return "", 0
	}
	return g.entry, g.MaxTotal
}

// Network is one interface of a server. A network with more than its name gets a port
// that the agent makes, and removes again.
type Network struct {
	Network          string   `json:"network"`
	Subnet           string   `json:"subnet"` // an ID
	SecurityGroups   []string `json:"securityGroups"`
	PortSecurity     *bool    `json:"portSecurity"`
	AllowedAddresses []string `json:"allowedAddresses"`
}

// Volume is a disk that is made of the image. Size is in GiB.
type Volume struct {
	Size int    `json:"size"`
	Type string `json:"type"`
}

// Words is a list that may be written as one word.
type Words []string

// UnmarshalJSON takes a text or a list of texts.
func (w *Words) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*w = Words{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

// UnmarshalJSON takes a network's name, or a mapping.
func (n *Network) UnmarshalJSON(raw []byte) error {
	type plain Network
	if json.Unmarshal(raw, &n.Network) == nil {
		return nil
	}
	return json.Unmarshal(raw, (*plain)(n))
}

// Taint is kubectl's form, key=value:Effect.
type Taint struct{ cluster.Taint }

// UnmarshalJSON reads key=value:Effect or key:Effect.
func (t *Taint) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	head, effect, ok := strings.Cut(s, ":")
	key, value, _ := strings.Cut(head, "=")
	if !ok || key == "" || !slices.Contains([]string{"NoSchedule", "NoExecute", "PreferNoSchedule"}, effect) {
		return fmt.Errorf("%q is no taint: write key=value:NoSchedule, :PreferNoSchedule or :NoExecute", s)
	}
	t.Taint = cluster.Taint{Key: key, Value: value, Effect: effect}
	return nil
}

// Parse reads the section; a group with "flavors" becomes one group for each of them. The error
// joins every mistake, each with its place and what to write instead.
func Parse(raw json.RawMessage) (Section, error) {
	s, err := strict.Decode[Section](raw, "cluster, clouds and groups")
	if err != nil {
		return s, err
	}
	return s, s.validate()
}

// groupForm is what is good as the beginning of a Node's name and in Neutron's
// description.
var groupForm = lazyregexp.New(`\A[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?\z`)

var domainForm = lazyregexp.New(`\A[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\z`)

// metadataForm is what Nova takes as a key of metadata.
var metadataForm = lazyregexp.New(`\A[a-zA-Z0-9-_:. ]{1,255}\z`)

var policies = []string{"affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"}

func (s *Section) validate() error {
	var mistakes []string // groups of one list of flavors share most fields
	bad := func(at, format string, args ...any) {
		if text := at + ": " + fmt.Sprintf(format, args...); !slices.Contains(mistakes, text) {
			mistakes = append(mistakes, text)
		}
	}
	if s.Cluster != "" && !IsClusterName(s.Cluster) {
		bad("cluster", "%q: write at most 40 letters, digits, dots, dashes and underscores, for example production", s.Cluster)
	}
	clouds := map[string]bool{}
	domain := func(at, d string) {
		if d != "" && (len(d) > 200 || !domainForm.MatchString(d)) {
			bad(at, "%q: write a DNS domain in small letters without a dot at either end, for example cloud.example.com", d)
		}
	}
	domain("dhcpDomain", s.DHCPDomain)
	for i, c := range s.Clouds {
		at := fmt.Sprintf("clouds[%d]", i)
		domain(at+".dhcpDomain", c.DHCPDomain)
		switch {
		case c.Name == "":
			bad(at+".name", "give it a name: groups speak of it by that")
		case clouds[c.Name]:
			bad(at+".name", "%q stands twice: every cloud has a name of its own", c.Name)
		}
		clouds[c.Name] = true
	}
	made := s.groups(bad)
	s.Groups = make([]Group, len(made))
	names := map[string]bool{}
	for i := range made {
		g := &made[i]
		if names[g.Name] {
			bad(g.place("name"), "%q stands twice: every group has a name of its own, and so has every flavor of flavors", g.Name)
		}
		names[g.Name] = true
		switch {
		case g.Cloud == "" && len(s.Clouds) > 1:
			bad(g.place("cloud"), "there are several clouds: name one of %s", strings.Join(slices.Sorted(maps.Keys(clouds)), ", "))
		case g.Cloud != "" && !clouds[g.Cloud]:
			bad(g.place("cloud"), "%q is not among the clouds of this section: add it there, or leave it out", g.Cloud)
		}
		if g.Cloud == "" && len(s.Clouds) == 1 {
			g.Cloud = s.Clouds[0].Name
		}
		g.validate(g.nameForm(), func(field, format string, args ...any) { bad(g.place(field), format, args...) })
		s.Groups[i] = g.Group
	}
	errs := make([]error, len(mistakes))
	for i, text := range mistakes {
		errs[i] = errors.New(text)
	}
	return errors.Join(errs...)
}

const nameForm = "%q: write at most 40 small letters, digits, dots and dashes: Nodes are named after it, for example workers"

func (g *Group) validate(nameForm string, bad func(field, format string, args ...any)) {
	if !groupForm.MatchString(g.Name) {
		bad("name", nameForm, g.Name)
	}
	if len(g.Flavor) == 0 || slices.Contains(g.Flavor, "") {
		bad("flavor", "name a flavor as `openstack flavor list` shows it, or a list of them")
	}
	if g.Image == "" {
		bad("image", "name an image as `openstack image list` shows it")
	}
	if len(g.Networks) == 0 {
		bad("networks", "name at least one network as `openstack network list` shows it")
	}
	for i, n := range g.Networks {
		if n.Network == "" {
			bad(fmt.Sprintf("networks[%d].network", i), "name the network")
		}
		if n.PortSecurity != nil && !*n.PortSecurity && len(n.SecurityGroups)+len(n.AllowedAddresses) > 0 {
			bad(fmt.Sprintf("networks[%d].portSecurity", i), "a port without port security has neither security groups nor allowed addresses: leave one out")
		}
	}
	if g.Min < 0 || g.Max < 1 || g.Min > g.Max {
		bad("max", "%d..%d are no bounds: write min of 0 or more and max of min or more, at least 1", g.Min, g.Max)
	}
	if g.Price < 0 {
		bad("price", "%g: write what a machine costs per hour, 0 where that is not known", g.Price)
	}
	if g.UserData == "" || g.UserData[0] != '/' {
		bad("userdata", "%q: name a file by its whole path; autoscaler-agent userdata render --cloud openstack makes one", g.UserData)
	}
	if g.Arch != "" && g.Arch != "amd64" && g.Arch != "arm64" {
		bad("arch", "%q: write amd64 or arm64", g.Arch)
	}
	if g.ServerGroup != "" && !slices.Contains(policies, g.ServerGroup) && openstack.UUID(g.ServerGroup) == "" {
		bad("serverGroup", "%q: write one of %s, or the ID of a server group that is there", g.ServerGroup, strings.Join(policies, ", "))
	}
	if g.BootVolume != nil && g.BootVolume.Size < 1 {
		bad("bootVolume.size", "%d: write the size of the disk in GiB", g.BootVolume.Size)
	}
	for key, value := range g.Metadata {
		if !metadataForm.MatchString(key) || len(value) > 255 || strings.HasPrefix(key, "autoscaler-agent.") {
			bad("metadata."+key, "Nova takes letters, digits, spaces and -_:. in a key and at most 255 characters; autoscaler-agent.* is the agent's own")
		}
	}
}

// OwnPorts reports whether the agent makes the ports of the group's servers.
func (g *Group) OwnPorts() bool {
	return g.FloatingIP != "" || slices.ContainsFunc(g.Networks, func(n Network) bool {
		return n.Subnet != "" || n.PortSecurity != nil || len(n.SecurityGroups)+len(n.AllowedAddresses) > 0
	})
}

// clusterForm is the form of a name in a tag of Nova (at most 60 characters, no slash, no
// comma) behind our own prefix.
var clusterForm = lazyregexp.New(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,39}\z`)

// IsClusterName reports whether a name is good as the cluster's in a tag of Nova.
func IsClusterName(name string) bool { return clusterForm.MatchString(name) }
