package openstack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Flavor is one of Nova's. RAM is in MiB, disks in GiB.
type Flavor struct {
	ID, Name        string
	VCPUs, RAM      int
	Disk, Ephemeral int
	ExtraSpecs      map[string]string
}

// Image is one of Glance's. MinDisk is in GiB.
type Image struct {
	ID, Name, Status string
	MinDisk          int
	Created          time.Time
	Properties       map[string]string
}

// Network is one of Neutron's with one subnet. An external one has floating IPs.
type Network struct {
	ID, Name, SubnetID, SubnetName, CIDR string
	External                             bool
	next                                 int // host number of the next address
	v6                                   bool
}

// Port is one of Neutron's. One that Nova made goes with its server.
type Port struct {
	ID, Name, Description, NetworkID, DeviceID, DeviceOwner, MAC string
	Addresses, SecurityGroups, AllowedPairs                      []string
	Tags                                                         []string
	PortSecurity                                                 bool
	Project                                                      string
	Created                                                      time.Time
	byNova                                                       bool
}

// FloatingIP is one of Neutron's.
type FloatingIP struct {
	ID, Address, Description, NetworkID, PortID, Project string
	Tags                                                 []string
}

// Volume is one of Cinder's. SizeGiB.
type Volume struct {
	ID, ServerID        string
	SizeGiB             int
	Type                string
	DeleteOnTermination bool
}

// ServerGroup is one of Nova's.
type ServerGroup struct {
	ID, Name, Policy string
	Members          []string
	Project          string
}

// Quota is what a project may have in a region; -1: as much as it likes.
type Quota struct{ Instances, Cores, RAM, Ports, FloatingIPs int }

// Region is one region of a cloud.
type Region struct {
	cloud  *Cloud
	name   string
	number int

	zones    []string
	flavors  []*Flavor
	images   []*Image
	networks []*Network
	groups   map[string]string // security groups: ID to name
	texts    map[string]string // their descriptions
	rules    []*SecurityRule
	keys     map[string]string
	servers  []*Server // in order of creation
	ports    []*Port
	floating []*FloatingIP
	volumes  []*Volume
	anti     []*ServerGroup
	quota    Quota
	full     []place         // where no server can be placed
	broken   string          // why no server builds; empty: they do
	frozen   []*Server       // what reads show; nil: what there is
	stuck    map[string]bool // servers that cannot be deleted
}

// place is a flavor in a zone, by patterns of path.Match.
type place struct{ flavor, zone string }

// What every region has. IDs are the same in each.
const (
	ImageID       = "11a6e000-0000-4000-8000-000000000001" // named ubuntu-24.04
	ImageName     = "ubuntu-24.04"
	NetworkName   = "workers"
	PublicNetwork = "public"
	KeyName       = "ops"
	defaultGroup  = "5ec06000-0000-4000-8000-000000000001"
	workersGroup  = "5ec06000-0000-4000-8000-000000000002"
)

func newRegion(c *Cloud, name string, number int) *Region {
	r := &Region{cloud: c, name: name, number: number, zones: slices.Clone(c.opts.Zones), quota: Quota{-1, -1, -1, -1, -1},
		groups: map[string]string{defaultGroup: "default", workersGroup: "workers"}, keys: map[string]string{KeyName: "ssh-ed25519 AAAA ops"},
		texts: map[string]string{}, stuck: map[string]bool{}}
	for i, f := range []Flavor{
		{Name: "m1.small", VCPUs: 1, RAM: 2048, Disk: 20}, {Name: "m1.medium", VCPUs: 2, RAM: 4096, Disk: 40},
		{Name: "m1.large", VCPUs: 4, RAM: 8192, Disk: 80}, {Name: "m1.xlarge", VCPUs: 8, RAM: 16384, Disk: 160},
		{Name: "v1.large", VCPUs: 4, RAM: 8192}, // no disk of its own: boots from a volume
		{Name: "g1.large", VCPUs: 8, RAM: 32768, Disk: 100, Ephemeral: 200, ExtraSpecs: map[string]string{"resources:VGPU": "1"}},
	} {
		f.ID = fmt.Sprintf("f1a00000-0000-4000-8000-%012d", i+1)
		r.flavors = append(r.flavors, &f)
	}
	r.images = []*Image{{ID: ImageID, Name: ImageName, Status: "active", MinDisk: 10, Created: c.started,
		Properties: map[string]string{"os_distro": "ubuntu", "os_type": "linux", "hw_architecture": "x86_64"}}}
	r.networks = []*Network{
		{ID: "0e700000-0000-4000-8000-000000000001", Name: NetworkName, SubnetID: "50b00000-0000-4000-8000-000000000001", SubnetName: "workers-v4", CIDR: fmt.Sprintf("10.%d.0.0/16", 20+number), v6: true},
		{ID: "0e700000-0000-4000-8000-000000000002", Name: "storage", SubnetID: "50b00000-0000-4000-8000-000000000002", SubnetName: "storage-v4", CIDR: fmt.Sprintf("10.%d.0.0/16", 60+number)},
		{ID: "0e700000-0000-4000-8000-000000000003", Name: PublicNetwork, SubnetID: "50b00000-0000-4000-8000-000000000003", SubnetName: "public-v4", CIDR: []string{"203.0.113.0/24", "198.51.100.0/24"}[number%2], External: true},
	}
	return r
}

// Name is the region's.
func (r *Region) Name() string { return r.name }

// PutFlavor adds a flavor, or changes the one of its name; its ID is made when empty.
func (r *Region) PutFlavor(f Flavor) Flavor {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if f.ID == "" {
		f.ID = newID()
	}
	r.flavors = slices.DeleteFunc(r.flavors, func(o *Flavor) bool { return o.Name == f.Name })
	r.flavors = append(r.flavors, &f)
	return f
}

// PutImage adds an image; its ID is made when empty.
func (r *Region) PutImage(i Image) Image {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if i.ID == "" {
		i.ID = newID()
	}
	if i.Status == "" {
		i.Status = "active"
	}
	if i.Created.IsZero() {
		i.Created = time.Now()
	}
	r.images = append(r.images, &i)
	return i
}

// RemoveFlavor and RemoveImage take one away by its name.
func (r *Region) RemoveFlavor(name string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.flavors = slices.DeleteFunc(r.flavors, func(f *Flavor) bool { return f.Name == name })
}

// RemoveImage takes an image away by its name.
func (r *Region) RemoveImage(name string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.images = slices.DeleteFunc(r.images, func(i *Image) bool { return i.Name == name })
}

// SetQuota sets what every project may have here.
func (r *Region) SetQuota(q Quota) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.quota = q
}

// NoValidHost makes every further server of these flavors in these zones (patterns of
// path.Match) fail as Nova's scheduler fails them, until Space.
func (r *Region) NoValidHost(flavor, zone string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.full = append(r.full, place{flavor, zone})
}

// FailBuilds makes every further server fail while it builds, with these words; empty:
// no more.
func (r *Region) FailBuilds(message string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.broken = message
}

// Freeze lets reads of servers show them as they are now, as a database that lags does.
func (r *Region) Freeze(on bool) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.frozen = nil
	if on {
		r.frozen = []*Server{}
		for _, s := range r.servers {
			copied := r.copied(s)
			r.frozen = append(r.frozen, &copied)
		}
	}
}

// shown are the servers that reads show. The caller holds the lock.
func (r *Region) shown() []*Server {
	if r.frozen != nil {
		return r.frozen
	}
	return r.servers
}

// Space takes back every NoValidHost.
func (r *Region) Space() {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.full = nil
}

// Network returns a network by its name; nil: there is none.
func (r *Region) Network(name string) *Network {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	for _, n := range r.networks {
		if n.Name == name {
			copied := *n
			return &copied
		}
	}
	return nil
}

// PutPort makes a port of demo's as somebody else would; it gets an ID and addresses.
func (r *Region) PutPort(p Port) Port {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	made := r.newPort(r.network(p.NetworkID), demoProjectID)
	made.Name, made.Description, made.Created = p.Name, p.Description, p.Created
	return *made
}

// Ports, FloatingIPs, Volumes and ServerGroups list what there is, in order of making.
func (r *Region) Ports() []Port { return list(r.cloud, &r.ports) }

// FloatingIPs lists them in order of making.
func (r *Region) FloatingIPs() []FloatingIP { return list(r.cloud, &r.floating) }

// Volumes lists them in order of making.
func (r *Region) Volumes() []Volume { return list(r.cloud, &r.volumes) }

// ServerGroups lists them in order of making.
func (r *Region) ServerGroups() []ServerGroup { return list(r.cloud, &r.anti) }

func list[T any](c *Cloud, of *[]*T) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]T, len(*of))
	for i, one := range *of {
		out[i] = *one
	}
	return out
}

// flavor finds one by its ID. The caller holds the lock.
func (r *Region) flavor(id string) *Flavor {
	for _, f := range r.flavors {
		if f.ID == id {
			return f
		}
	}
	return nil
}

func (r *Region) image(id string) *Image {
	for _, i := range r.images {
		if i.ID == id {
			return i
		}
	}
	return nil
}

func (r *Region) network(id string) *Network {
	for _, n := range r.networks {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (r *Region) port(id string) *Port {
	for _, p := range r.ports {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (r *Region) server(id string) *Server {
	for _, s := range r.servers {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// securityGroup finds the ID of one by name or ID.
func (r *Region) securityGroup(name string) (string, bool) {
	for id, n := range r.groups {
		if id == name || n == name {
			return id, true
		}
	}
	return "", false
}

// address takes the next address of a network.
func (n *Network) address() []string {
	n.next++
	host := n.next + 10
	prefix := strings.Split(n.CIDR, ".")
	v4 := fmt.Sprintf("%s.%s.%d.%d", prefix[0], prefix[1], host/250, host%250+1)
	if n.External {
		v4 = fmt.Sprintf("%s.%d", strings.Join(prefix[:3], "."), host)
	}
	if !n.v6 {
		return []string{v4}
	}
	return []string{v4, fmt.Sprintf("fd00:%s::%x", prefix[1], host)}
}

// newPort makes a port. The caller holds the lock.
func (r *Region) newPort(n *Network, project string) *Port {
	p := &Port{ID: newID(), NetworkID: n.ID, Addresses: n.address(), PortSecurity: true, SecurityGroups: []string{defaultGroup}, Project: project, Created: time.Now()}
	p.MAC = "fa:16:3e:" + p.ID[0:2] + ":" + p.ID[2:4] + ":" + p.ID[4:6]
	r.ports = append(r.ports, p)
	return p
}
