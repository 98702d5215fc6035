package openstack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Driver is what makes the nodes of a Magnum cluster.
type Driver string

// The drivers that are played. All answer a resize alike; they differ in what they do
// about it and in how their servers can be told.
const (
	// HeatDriver is Magnum's own: a stack with a resource group of indices. What is named
	// for removal, by server or by index, is never made again; what was named and is not
	// there is ignored; indices that fail stay.
	HeatDriver Driver = "heat"
	// MetadataDriver needs no Heat: it writes cluster, group and index into the metadata
	// of its servers.
	MetadataDriver Driver = "metadata"
	// ClusterAPIDriver is magnum-cluster-api: names begin with the stack ID "kube-xxxxx",
	// and names for removal are honoured.
	ClusterAPIDriver Driver = "magnum-cluster-api"
	// CAPIHelmDriver is magnum-capi-helm: names begin with the stack ID, and names for
	// removal are ignored: it removes the oldest.
	CAPIHelmDriver Driver = "magnum-capi-helm"
)

// MagnumCluster is one of Magnum's, as its owner describes it and as it is.
type MagnumCluster struct {
	UUID, Name           string
	Driver               Driver
	Labels               map[string]string
	StackID              string
	Status, StatusReason string
	Created, Updated     time.Time
	// Healing makes servers anew that somebody deleted, as magnum-auto-healer does in
	// clusters with the label auto_healing_enabled.
	Healing bool
	// Lost counts resizes that came while an operation was under way: Magnum accepted
	// them, and nothing came of them (kubernetes/autoscaler#6213).
	Lost int
	// NodeWord stands in the names of nodes: "node", which is the default, or "minion" as
	// until release Stein.
	NodeWord string
	// Masterless has no master node of its own: the control plane is elsewhere.
	Masterless bool

	held bool // SetClusterStatus put it where it is

	stackName string
	masters   []*Server
	groups    []*nodeGroup
}

// NodeGroup is a node group of a cluster, as its owner describes it and as it is.
type NodeGroup struct {
	UUID, Name, Role string
	Flavor, Image    string // names or IDs
	Count, Min       int
	Max              int // negative: none
	Labels           map[string]string
	Default          bool
	// UserData is given to its servers: Magnum's drivers make their own, and this stands
	// for it.
	UserData             []byte
	StackID              string
	Status, StatusReason string
	Addresses            []string // as of the last operation that worked
	Created, Updated     time.Time
	Servers              []Server
}

type nodeGroup struct {
	NodeGroup
	cluster   *MagnumCluster
	stackName string
	nested    string // ID of the stack of its resource group
	slots     []*slot
	removed   map[int]bool // indices that are never made again
	broken    bool
}

// slot is one index of a node group.
type slot struct {
	index  int
	server string // ID, empty: none was made
	why    string // it was not made
}

// magnum is the service of one cloud, in its first region.
type magnum struct {
	cloud          *Cloud
	clusters       []*MagnumCluster
	highest        int           // microversion 1.highest
	conductorDelay time.Duration // from the answer to the first sign of it
	pollDelay      time.Duration // between looks at what becomes of an operation
	driverDelay    time.Duration // from an operation's status on its group to that on the cluster
	begun          int           // operations within that
	held           []func()      // accepted while taking is held
	taking, ending bool          // held: accepted resizes are not taken up, operations do not end
	heat           bool
	heatForbidden  bool
	accepted       int // resizes that the conductor has not taken up
	resizes        []Resize
	refusal        string // of every node that is to be made
}

// addMagnum adds the container infrastructure API to the catalog, and Heat.
func (c *Cloud) addMagnum() {
	c.magnum = &magnum{cloud: c, highest: 10, pollDelay: 5 * time.Millisecond, conductorDelay: 2 * time.Millisecond}
	c.addService("container-infra", "magnum", "/container-infra/v1", c.magnum.serve)
	c.SetHeat(true)
}

// Resize is one that the conductor took up.
type Resize struct {
	At       time.Time
	Group    string
	From, To int
	Named    []string // for removal
}

// Resizes lists them in order.
func (c *Cloud) Resizes() []Resize {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.magnum.resizes)
}

// SetHeat puts Heat into the catalog, or takes it out.
func (c *Cloud) SetHeat(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.heat = on
	if on {
		c.addService("orchestration", "heat", "/orchestration/v1/"+demoProjectID, c.magnum.serveHeat)
	} else {
		delete(c.services, "orchestration")
	}
}

// ForbidHeat leaves Heat in the catalog and refuses its use.
func (c *Cloud) ForbidHeat(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.heatForbidden = on
}

// FailNodes lets no further node be made, for a reason in Heat's words; empty: they are
// made again.
func (c *Cloud) FailNodes(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.refusal = why
}

// SetMagnum sets the highest microversion 1.highest of Magnum, how long an accepted
// resize does not show, and how often Magnum looks at its operations.
func (c *Cloud) SetMagnum(highest int, conductor, poll time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.highest, c.magnum.conductorDelay, c.magnum.pollDelay = highest, conductor, poll
}

// HoldMagnum keeps accepted resizes from being taken up, and operations from ending, until
// it is called again.
func (c *Cloud) HoldMagnum(taking, ending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.taking, c.magnum.ending = taking, ending
	if !taking {
		for _, take := range c.magnum.held {
			take()
		}
		c.magnum.held = nil
	}
}

// SetMagnumDriver sets how long Magnum's driver takes to accept an operation: so long it
// shows on its group, and not yet on the cluster.
func (c *Cloud) SetMagnumDriver(delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.driverDelay = delay
}

// PutCluster adds a cluster with one master node and the given worker groups, as it is
// once all of that has been made; the servers build as others do.
func (c *Cloud) PutCluster(m MagnumCluster, groups ...NodeGroup) (MagnumCluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.UUID, m.Created, m.Updated, m.Status = newID(), time.Now(), time.Now(), "CREATE_COMPLETE"
	switch m.Driver {
	case "":
		m.Driver = HeatDriver
		fallthrough
	case HeatDriver:
		m.StackID, m.stackName = newID(), stackName(m.Name)
	case MetadataDriver:
		m.StackID = newID()
	case ClusterAPIDriver:
		m.StackID = "kube-" + shortID(5)
	case CAPIHelmDriver:
		m.StackID = stackName(m.Name)
	}
	if m.stackName == "" {
		m.stackName = m.StackID
	}
	r := c.Region
	if !m.Masterless {
		m.masters = []*Server{r.spawn(&Server{Name: m.stackName + "-master-0", Flavor: *r.flavors[1], Project: demoProjectID})}
	}
	cluster := &m
	for _, g := range groups {
		if err := c.addGroup(cluster, g); err != nil {
			return m, err
		}
	}
	c.magnum.clusters = append(c.magnum.clusters, cluster)
	c.magnum.watch(cluster)
	return *cluster, nil
}

func (c *Cloud) addGroup(m *MagnumCluster, spec NodeGroup) error {
	g := &nodeGroup{NodeGroup: spec, cluster: m, nested: newID(), removed: map[int]bool{}}
	g.UUID, g.Created, g.Updated, g.Status = newID(), time.Now(), time.Now(), "CREATE_IN_PROGRESS"
	if g.Role == "" {
		g.Role = "worker"
	}
	if g.Image == "" {
		g.Image = ImageID
	}
	g.StackID, g.stackName = m.StackID, m.stackName
	if m.Driver == HeatDriver && !g.Default {
		g.StackID, g.stackName = newID(), stackName(m.Name[:min(len(m.Name), 20)]+"-"+g.Name[:min(len(g.Name), 9)])
	}
	if c.magnum.flavor(g.Flavor) == nil {
		return fmt.Errorf("make node group %s: no flavor %q", g.Name, g.Flavor)
	}
	m.groups = append(m.groups, g)
	c.magnum.scale(g, nil)
	return nil
}

// PutNodeGroup adds a group to a cluster, or changes bounds, flavor, labels and user
// data of the one of that name.
func (c *Cloud) PutNodeGroup(cluster string, spec NodeGroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.magnum.cluster(cluster)
	if m == nil {
		return fmt.Errorf("put node group %s: no cluster %s", spec.Name, cluster)
	}
	if g := m.group(spec.Name); g != nil {
		g.Min, g.Max, g.Flavor, g.Labels, g.UserData, g.Updated = spec.Min, spec.Max, spec.Flavor, spec.Labels, spec.UserData, time.Now()
		return nil
	}
	return c.addGroup(m, spec)
}

// RemoveNodeGroup makes a group and its servers go at once.
func (c *Cloud) RemoveNodeGroup(cluster, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.magnum.cluster(cluster)
	for _, s := range c.magnum.servers(m.group(name)) {
		c.Region.remove(s)
	}
	m.groups = slices.DeleteFunc(m.groups, func(g *nodeGroup) bool { return g.Name == name })
}

// BreakNodeGroup makes Magnum answer 500 when one group is read, or takes that back.
func (c *Cloud) BreakNodeGroup(cluster, name string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.cluster(cluster).group(name).broken = on
}

// ResizeNodeGroup does what `openstack coe cluster resize` of an operator does, once
// nothing else is under way.
func (c *Cloud) ResizeNodeGroup(cluster, name string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.magnum.cluster(cluster)
	c.magnum.conduct(m, m.group(name), count, nil)
}

// SetClusterStatus puts a cluster into a state, in which it stays until somebody resizes
// it or sets another one.
func (c *Cloud) SetClusterStatus(cluster, status, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.magnum.cluster(cluster)
	m.Status, m.StatusReason, m.Updated, m.held = status, reason, time.Now(), strings.HasSuffix(status, "_IN_PROGRESS")
}

// Heal switches the healing of a cluster on or off.
func (c *Cloud) Heal(cluster string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.magnum.cluster(cluster).Healing = on
}

// MagnumClusterNamed returns a cluster by name or UUID.
func (c *Cloud) MagnumClusterNamed(name string) (MagnumCluster, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.magnum.cluster(name); m != nil {
		return *m, true
	}
	return MagnumCluster{}, false
}

// NodeGroupNamed returns a group with its servers, those on their way out included.
func (c *Cloud) NodeGroupNamed(cluster, name string) (NodeGroup, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.magnum.cluster(cluster)
	if m == nil || m.group(name) == nil {
		return NodeGroup{}, false
	}
	g := m.group(name)
	out := g.NodeGroup
	out.Labels, out.Addresses = maps.Clone(g.Labels), slices.Clone(g.Addresses)
	for _, s := range c.magnum.servers(g) {
		out.Servers = append(out.Servers, c.Region.copied(s))
	}
	return out, true
}

// NodeGroups are the names of a cluster's worker groups.
func (c *Cloud) NodeGroups(cluster string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, g := range c.magnum.cluster(cluster).groups {
		out = append(out, g.Name)
	}
	return out
}

// MagnumBusy names what has not come to an end: an operation, or a server on its way in
// or out. Empty: nothing more will change by itself.
func (c *Cloud) MagnumBusy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.magnum.clusters {
		if strings.HasSuffix(m.Status, "_IN_PROGRESS") {
			return m.Name + " is " + m.Status
		}
		for _, g := range m.groups {
			if strings.HasSuffix(g.Status, "_IN_PROGRESS") {
				return g.Name + " is " + g.Status
			}
			if m.Healing && c.magnum.ill(g) {
				return g.Name + " heals"
			}
		}
	}
	if c.magnum.begun > 0 {
		return "the driver takes an operation"
	}
	for _, s := range c.Region.servers {
		if s.Status == "BUILD" || s.TaskState == "deleting" {
			return s.Name + " is " + s.Status + " " + s.TaskState
		}
	}
	return ""
}

// Accepted is how many resizes were answered and not taken up yet.
func (c *Cloud) Accepted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.magnum.accepted
}

func (m *magnum) cluster(ident string) *MagnumCluster {
	for _, c := range m.clusters {
		if c.UUID == ident || c.Name == ident {
			return c
		}
	}
	return nil
}

func (m *MagnumCluster) group(ident string) *nodeGroup {
	for _, g := range m.groups {
		if g.UUID == ident || g.Name == ident {
			return g
		}
	}
	return nil
}

func (m *magnum) flavor(ref string) *Flavor {
	for _, f := range m.cloud.Region.flavors {
		if f.ID == ref || f.Name == ref {
			return f
		}
	}
	return nil
}

// shortID is what Magnum puts behind names to make them unique.
func shortID(n int) string { return strings.ReplaceAll(newID(), "-", "")[:n] }

func stackName(base string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(base[:min(len(base), 30)])) + "-" + shortID(12)
}
