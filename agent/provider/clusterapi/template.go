package clusterapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
	"github.com/autoscaler-agent/autoscaler-agent/internal/quantity"
)

// draft is a template under construction.
type draft struct {
	template cluster.Template
	warnings []string
}

func (d *draft) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(d.warnings, w) {
		d.warnings = append(d.warnings, w)
	}
}

// template describes the next node of the group. Its size comes from the capacity
// annotations, or else from the infrastructure template's status.capacity, or else from a
// node of the same template.
func (p *Provider) template(ctx context.Context, g *source, infra map[string]infraAnswer) draft {
	var d draft
	t := &g.Spec.Template.Spec
	answer := infra[templateKey(g.Namespace, t.InfrastructureRef)]
	d.template.Spec = specOf(g.Scalable, answer.object)
	capacity := cluster.Resources{}
	if answer.object != nil {
		capacity = amounts(answer.object.Status.Capacity)
	} else if answer.err != nil && g.noTemplate == nil {
		d.warn("its infrastructure template cannot be read: %v", answer.err)
	}
	seen, hasSeen := p.seenNode(ctx, g, d.template.Spec)
	fromNode := false
	if capacity.MilliCPU == 0 || capacity.Memory == 0 {
		if hasSeen {
			capacity, fromNode = seen.capacity, true
		}
	}
	annotated := d.annotations(g.Annotations, &capacity)
	if capacity.Pods == 0 {
		capacity.Pods = cmp.Or(p.reservation.MaxPods, 110)
	}
	d.template.Capacity = capacity
	reserved := p.reservation
	reserved.MaxPods = capacity.Pods
	d.template.Allocatable = reserved.Allocatable(capacity)
	if fromNode && !annotated {
		d.template.Allocatable = seen.allocatable
	}
	d.template.Labels = p.labels(g, answer.object, seen.labels, &d)
	if zones := g.Spec.FailureDomains; len(zones) > 1 {
		d.template.Zones, d.template.ZoneLabels = slices.Sorted(slices.Values(zones)), []string{"topology.kubernetes.io/zone"}
	}
	d.template.Taints = taints(g.Scalable, &d)
	d.accelerator(g.Scalable)
	switch {
	case capacity.MilliCPU == 0 || capacity.Memory == 0:
		d.template.Unknown = fmt.Sprintf("the size of its machines is not known: %s %s has no status.capacity, no node of the group shows it, and the annotations %s and %s are not on the %s: add them",
			t.InfrastructureRef.Kind, t.InfrastructureRef.Name, keyCPU, keyMemory, g.Kind)
	case capacity.EphemeralStorage == 0:
		d.warn("the size of its machines' disks is not known, so pods that request ephemeral-storage do not fit a new machine; add the annotation %s", keyDisk)
	}
	return d
}

// specOf returns a digest of everything that determines the next node.
func specOf(o *capi.Scalable, infra *capi.Infrastructure) string {
	t := o.Spec.Template
	relevant := map[string]any{
		"ref": t.Spec.InfrastructureRef, "bootstrap": t.Spec.Bootstrap, "version": t.Spec.Version, "domain": t.Spec.FailureDomain,
		"labels": t.Metadata.Labels, "taints": t.Spec.Taints,
	}
	if infra != nil {
		relevant["uid"], relevant["status"] = infra.UID, infra.Status
	}
	for key, value := range o.Annotations {
		if strings.HasPrefix(key, capacityPrefix) {
			relevant[key] = value
		}
	}
	raw, _ := json.Marshal(relevant) // maps, strings and raw JSON that was read: it cannot fail
	sum := sha256.Sum256(raw)
	return t.Spec.InfrastructureRef.Kind + "/" + t.Spec.InfrastructureRef.Name + "@" + hex.EncodeToString(sum[:6])
}

// amounts reads quantities in the form of a node's capacity.
func amounts(list map[string]json.RawMessage) cluster.Resources {
	var r cluster.Resources
	for name, raw := range list {
		if n, err := quantity.Parse(name, strings.Trim(string(raw), `"`)); err == nil {
			setAmount(&r, name, n)
		}
	}
	return r
}

func setAmount(r *cluster.Resources, name string, n int64) {
	switch name {
	case "cpu":
		r.MilliCPU = n
	case "memory":
		r.Memory = n
	case "ephemeral-storage":
		r.EphemeralStorage = n
	case "pods":
		r.Pods = n
	default:
		extended := maps.Clone(r.Extended)
		if extended == nil {
			extended = map[string]int64{}
		}
		extended[name] = n
		r.Extended = extended
	}
}

// annotations applies the capacity annotations to r; it tells whether they have both cpu
// and memory.
func (d *draft) annotations(annotations map[string]string, r *cluster.Resources) bool {
	take := func(key, name string, whole bool) bool {
		text := annotations[key]
		if text == "" {
			return false
		}
		n, err := quantity.Parse(name, text)
		if err == nil && whole {
			_, err = strconv.ParseUint(text, 10, 63)
		}
		if err != nil {
			d.warnings = append(d.warnings, leftOut(key, text, errors.New("write a quantity, for example 16, 500m or 64Gi (counts as whole numbers)")))
			return false
		}
		if n == 0 && name != annotations[keyGPUType] {
			return false
		}
		setAmount(r, name, n)
		return true
	}
	cpu := take(keyCPU, "cpu", false)
	memory := take(keyMemory, "memory", false)
	take(keyDisk, "ephemeral-storage", false)
	take(keyMaxPods, "pods", true)
	if typ := annotations[keyGPUType]; typ != "" && nodespec.Resource(typ) != nil {
		d.warnings = append(d.warnings, leftOut(keyGPUType, typ, nodespec.Resource(typ)))
	} else if typ != "" {
		if !take(keyGPUCount, typ, true) && annotations[keyGPUCount] == "" {
			d.warn("annotation %s names %s and %s does not say how many", keyGPUType, typ, keyGPUCount)
		}
	} else if annotations[keyGPUCount] != "" {
		d.warn("annotation %s has no effect without %s", keyGPUCount, keyGPUType)
	}
	d.csi(annotations[keyCSIDriver])
	if annotations[keyDRADriver] != "" {
		d.warn("annotation %s has no effect: a node of the group shows its devices, or template.devices in groups.yaml tells them", keyDRADriver)
	}
	return cpu && memory
}

// accelerator tells that the label of nodes with GPUs alone says nothing about GPUs: Cluster
// Autoscaler waits by it for the device plugin, and this agent by what the template promises.
func (d *draft) accelerator(o *capi.Scalable) {
	value := cmp.Or(d.template.Labels[labelAccelerator], o.Labels[labelAccelerator], o.Spec.Template.Metadata.Labels[labelAccelerator])
	if value == "" || len(d.template.Capacity.Extended) > 0 {
		return
	}
	d.warn("label %s=%s says that its nodes have devices, and nothing says which and how many: add the annotations %s (the resource, for example nvidia.com/gpu) and %s; until one of its nodes shows them, no pod that requests them gets a machine of it",
		labelAccelerator, value, keyGPUType, keyGPUCount)
}

// csi reads "driver=limit,driver2=limit2"; 0 means no limit.
func (d *draft) csi(text string) {
	for _, item := range split(text) {
		name, limit, ok := strings.Cut(item, "=")
		n, err := strconv.ParseInt(strings.TrimSpace(limit), 10, 32)
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || n < 0 {
			d.warn("annotation %s: %q is left out: write driver=limit", keyCSIDriver, item)
			continue
		}
		if n > 0 {
			if d.template.VolumeLimits == nil {
				d.template.VolumeLimits = map[string]int64{}
			}
			d.template.VolumeLimits[name] = n
		}
	}
}

func split(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// ofPlace has labels that apply to the next node only in a fixed and equal failure domain.
var ofPlace = []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"}

// ofShape has labels that every node of a template has.
var ofShape = []string{"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}

// seenNode returns the shape of a node of the same template, read once per template.
func (p *Provider) seenNode(ctx context.Context, g *source, spec string) (shape, bool) {
	if s, ok := p.facts.shape(spec); ok {
		return s, true
	}
	for _, m := range g.machines {
		if m.Status.NodeRef.Name == "" || m.DeletionTimestamp != nil || !g.current(m) {
			continue
		}
		n, err := capi.Get[capi.Node](ctx, p.workload, "get nodes", capi.Path("", "v1", "", "nodes", m.Status.NodeRef.Name)...)
		if err != nil {
			return shape{}, false // the next read tries again
		}
		s := shape{capacity: amounts(n.Status.Capacity), allocatable: amounts(n.Status.Allocatable), labels: map[string]string{}}
		if s.allocatable.MilliCPU == 0 || s.allocatable.Memory == 0 {
			return shape{}, false
		}
		take := ofShape
		if domain := g.Spec.Template.Spec.FailureDomain; domain != "" && domain == cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain) {
			take = slices.Concat(ofShape, ofPlace)
			for k := range n.Labels {
				if strings.HasPrefix(k, "topology.") && strings.Contains(k, ".csi.") {
					take = append(take, k)
				}
			}
		}
		for _, k := range take {
			if v, ok := n.Labels[k]; ok {
				s.labels[k] = v
			}
		}
		p.facts.learn(spec, s)
		return s, true
	}
	return shape{}, false
}

// current tells whether a machine was created from the group's current template.
func (g *source) current(m *capi.Machine) bool {
	s := g.ofSet[m.Owner(kindSet)]
	if s == nil {
		return g.Kind == kindPool
	}
	a, b := s.Spec.Template.Spec, g.Spec.Template.Spec
	return a.InfrastructureRef.Name == b.InfrastructureRef.Name && a.InfrastructureRef.Kind == b.InfrastructureRef.Kind && a.Version == b.Version
}

// infraAnswer is an infrastructure template or the error of its read.
type infraAnswer struct {
	object *capi.Infrastructure
	err    error
}

func templateKey(namespace string, r capi.Ref) string {
	group := r.APIGroup
	if group == "" {
		group, _, _ = strings.Cut(r.APIVersion, "/")
	}
	return group + "/" + r.Kind + "/" + namespace + "/" + r.Name
}

// atOnce is the number of templates that are read at the same time.
const atOnce = 8

// readInfra reads the infrastructure template of every group, each once. It does so in every
// round, because status.capacity may be set late.
func (p *Provider) readInfra(ctx context.Context, groups []*source) map[string]infraAnswer {
	wanted := map[string]*source{}
	for _, g := range groups {
		if r := g.Spec.Template.Spec.InfrastructureRef; r.Kind != "" && r.Name != "" {
			wanted[templateKey(g.Namespace, r)] = g
		}
	}
	var (
		mu  sync.Mutex
		wg  sync.WaitGroup
		out = map[string]infraAnswer{}
		sem = make(chan struct{}, atOnce)
	)
	for key, g := range wanted {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			o, err := p.infraTemplate(ctx, g.Namespace, g.Spec.Template.Spec.InfrastructureRef)
			if o != nil {
				p.facts.learnType(key, o.MachineType())
			}
			mu.Lock()
			defer mu.Unlock()
			out[key] = infraAnswer{o, err}
		})
	}
	wg.Wait()
	for _, g := range groups {
		answer := out[templateKey(g.Namespace, g.Spec.Template.Spec.InfrastructureRef)]
		if answer.err == nil || g.err != nil {
			continue
		}
		if e := classify("read", g.id, answer.err); e.Kind == provider.Transient || ctx.Err() != nil {
			g.noTemplate = e
		}
	}
	return out
}

func (p *Provider) infraTemplate(ctx context.Context, namespace string, r capi.Ref) (*capi.Infrastructure, error) {
	group, version, plural, err := p.management.Locate(ctx, r)
	if err != nil {
		return nil, err
	}
	return capi.Get[capi.Infrastructure](ctx, p.management, "get "+plural, capi.Path(group, version, cmp.Or(r.Namespace, namespace), plural, r.Name)...)
}
