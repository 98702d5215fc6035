package magnum

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	flavorapi "github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// flavorLife is how long a flavor's name is taken to mean the same flavor. A flavor
// itself does not change; an administrator may give its name to another one.
const flavorLife = 10 * time.Minute

// flavors remembers what flavors are.
type flavors struct {
	mu   sync.Mutex
	by   map[string]flavorapi.Flavor // by ID and by name
	read time.Time
}

// flavor finds a flavor by ID or name, as Magnum accepts both.
func (p *Provider) flavor(ctx context.Context, ref string) (flavorapi.Flavor, error) {
	if ref == "" {
		return flavorapi.Flavor{}, fail("resolve template", "", provider.Invalid, "", "the node group has no flavor")
	}
	f := &p.flavors
	f.mu.Lock()
	defer f.mu.Unlock()
	if found, ok := f.by[ref]; ok && p.now().Sub(f.read) < flavorLife {
		return found, nil
	}
	nova, err := p.session.Service(ctx, "compute", "")
	if err != nil {
		return flavorapi.Flavor{}, err
	}
	pages, err := flavorapi.ListDetail(nova, flavorapi.ListOpts{AccessType: flavorapi.AllAccess}).AllPages(ctx)
	var list []flavorapi.Flavor
	if err == nil {
		list, err = flavorapi.ExtractFlavors(pages)
	}
	if err != nil {
		return flavorapi.Flavor{}, err
	}
	f.by, f.read = map[string]flavorapi.Flavor{}, p.now()
	for _, one := range list {
		f.by[one.ID] = one
		if _, taken := f.by[one.Name]; !taken {
			f.by[one.Name] = one
		}
	}
	found, ok := f.by[ref]
	if !ok {
		return found, fail("resolve template", "", provider.Invalid, "see `openstack flavor list`", "flavor %s could not be found", ref)
	}
	if found.ExtraSpecs == nil {
		specs, err := flavorapi.ListExtraSpecs(ctx, nova, found.ID).Extract()
		switch {
		case err == nil:
			found.ExtraSpecs = specs
		case gophercloud.ResponseCodeIs(err, http.StatusForbidden), gophercloud.ResponseCodeIs(err, http.StatusNotFound):
			found.ExtraSpecs = map[string]string{} // the policy hides them; a hint can say what they would
		default:
			return found, err
		}
		f.by[found.ID], f.by[found.Name] = found, found
	}
	return found, nil
}

// types are the names of the flavors that are known, by ID.
func (p *Provider) types() map[string]string {
	p.flavors.mu.Lock()
	defer p.flavors.mu.Unlock()
	out := make(map[string]string, len(p.flavors.by))
	for key, f := range p.flavors.by {
		if key == f.ID {
			out[key] = f.Name
		}
	}
	return out
}

// template is the node that a group's next machine becomes. err is set when a read
// failed; a template that can never be resolved has only Unknown.
func (p *Provider) template(ctx context.Context, g *nodeGroup, h hints) (t cluster.Template, warnings []string, err *provider.Error) {
	f, cause := p.flavor(ctx, g.FlavorID)
	if cause != nil {
		e := openstack.Classify("resolve template", cluster.GroupID(g.Name), cause)
		t.Unknown = e.Error()
		if e.Kind == provider.Invalid {
			return t, nil, nil
		}
		return t, nil, e
	}
	disk := int64(f.Disk)
	if h.bootGiB > 0 {
		disk = h.bootGiB
	}
	if disk == 0 && h.resources["ephemeral-storage"] == 0 {
		warnings = append(warnings, fmt.Sprintf("flavor %s has no disk, so the size of the root file system is not known and pods that request ephemeral-storage find no room in a new node; set the label %s or %sephemeral-storage on the node group", f.Name, labelBootVolume, hintResources))
	}
	memory := int64(f.RAM)
	memory -= int64(math.Ceil(float64(memory) * p.cfg.VMMemoryOverheadPercent / 100))
	t.Capacity = h.apply(cluster.Resources{
		MilliCPU: int64(f.VCPUs) * 1000, Memory: memory << 20, EphemeralStorage: disk << 30, Pods: p.reservation.MaxPods,
		Extended: extended(f.ExtraSpecs),
	})
	t.Allocatable = p.reservation.Allocatable(t.Capacity)
	if pods, ok := h.resources["pods"]; ok {
		t.Allocatable.Pods = pods
	}
	t.Labels = p.labels(g, f, h)
	t.Taints = slices.Clone(h.taints)
	t.Spec, t.Source = spec(g, f, h), source(g, f)
	return t, warnings, nil
}

// source is what the group's next node is started from, as far as Nova tells it of a server too.
// A node that boots from a volume shows no image there, and a group whose image is written as a
// name tells none: of the rest (user data, networks, kube_tag) Magnum keeps what it was for no
// node.
func source(g *nodeGroup, f flavorapi.Flavor) cluster.Spec {
	out := cluster.Spec{propertyFlavor: f.Name}
	if id := openstack.UUID(g.ImageID); id != "" {
		out[propertyImage] = id
	}
	return out
}

// The properties that count as drift.
const (
	propertyFlavor = "flavor"
	propertyImage  = "image"
)

// extended are the devices that a flavor's extra specs promise under a name that
// Kubernetes knows.
func extended(specs map[string]string) map[string]int64 {
	out := map[string]int64{}
	if n, err := strconv.ParseInt(specs["resources:VGPU"], 10, 32); err == nil && n > 0 {
		out["nvidia.com/gpu"] = n
	}
	return out
}

// labels are those that every Node of the group will carry: Magnum's drivers set the
// first two, the cloud provider sets type, region and zone.
func (p *Provider) labels(g *nodeGroup, f flavorapi.Flavor, h hints) map[string]string {
	l := map[string]string{
		"magnum.openstack.org/role": g.Role, "magnum.openstack.org/nodegroup": g.Name,
		"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux",
		"kubernetes.io/arch": p.cfg.Arch, "beta.kubernetes.io/arch": p.cfg.Arch,
		"node.kubernetes.io/instance-type": f.Name, "beta.kubernetes.io/instance-type": f.Name,
	}
	if region := p.session.Region(); region != "" {
		l["topology.kubernetes.io/region"] = region
	}
	if h.zone != "" {
		l["topology.kubernetes.io/zone"], l["topology.cinder.csi.openstack.org/zone"] = h.zone, h.zone
	}
	maps.DeleteFunc(l, func(key, value string) bool { return nodespec.Label(key, value) != nil }) // names of the cloud, for example of a flavor with a blank
	for name, value := range h.labels {
		l[name] = value
	}
	return l
}

// spec is the key of a template: everything that decides what the next node looks
// like. What was learnt from nodes of another key does not hold for this one.
func spec(g *nodeGroup, f flavorapi.Flavor, h hints) string {
	volume := 0
	if g.DockerVolumeSize != nil {
		volume = *g.DockerVolumeSize
	}
	lines := []string{"flavor " + f.ID, "image " + g.ImageID, "role " + g.Role, "name " + g.Name, fmt.Sprintf("docker volume %d", volume)}
	// kube_tag and its like decide which kubelet runs.
	for key, value := range g.Labels {
		if strings.HasSuffix(key, "_tag") {
			lines = append(lines, "label "+key+"="+value)
		}
	}
	lines = append(lines, h.relevant...)
	slices.Sort(lines)
	sum := sha256.New()
	for _, line := range lines {
		fmt.Fprintf(sum, "%d %s\n", len(line), line)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
