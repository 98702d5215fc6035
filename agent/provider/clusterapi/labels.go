package clusterapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
	"github.com/autoscaler-agent/autoscaler-agent/internal/nodespec"
)

// reaches tells whether Cluster API copies a label from a Machine to its Node: labels of
// three domains (and their subdomains, except node-role), and labels that its
// --additional-sync-machine-labels match.
func (p *Provider) reaches(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	if domain == "node-role.kubernetes.io" {
		return true
	}
	for _, managed := range []string{"node-restriction.kubernetes.io", "node.cluster.x-k8s.io"} {
		if domain == managed || strings.HasSuffix(domain, "."+managed) {
			return true
		}
	}
	for _, re := range p.set.sync {
		if re.MatchString(key) {
			return true
		}
	}
	return false
}

// labels returns the labels of the next node.
func (p *Provider) labels(g *source, infra *capi.Infrastructure, seen map[string]string, d *draft) map[string]string {
	arch, system := p.set.arch, "linux"
	if infra != nil {
		arch = cmp.Or(infra.Status.NodeInfo.Architecture, seen["kubernetes.io/arch"], arch)
		system = cmp.Or(infra.Status.NodeInfo.OperatingSystem, seen["kubernetes.io/os"], system)
	} else {
		arch, system = cmp.Or(seen["kubernetes.io/arch"], arch), cmp.Or(seen["kubernetes.io/os"], system)
	}
	out := maps.Clone(seen)
	if out == nil {
		out = map[string]string{}
	}
	for _, prefix := range []string{"", "beta."} {
		out[prefix+"kubernetes.io/arch"], out[prefix+"kubernetes.io/os"] = arch, system
	}
	for k, v := range g.Spec.Template.Metadata.Labels {
		if err := nodespec.Label(k, v); err != nil && p.reaches(k) {
			d.warn("label %s=%q of the machine template is left out: %v", k, v, err)
		} else if p.reaches(k) {
			out[k] = v
		}
	}
	for _, item := range split(g.Annotations[keyLabels]) {
		k, v, ok := strings.Cut(item, "=")
		if !ok || k == "" {
			d.warn("annotation %s: %q is left out: write key=value", keyLabels, item)
			continue
		}
		if err := nodespec.Label(k, v); err != nil {
			d.warn("annotation %s: %q is left out: %v", keyLabels, item, err)
			continue
		}
		out[k] = v
	}
	return out
}

// taints returns the taints of the next node: those of the machine template, replaced by
// those of the annotation with the same key and effect.
func taints(o *capi.Scalable, d *draft) []cluster.Taint {
	var out []cluster.Taint
	set := func(t cluster.Taint) {
		out = slices.DeleteFunc(out, func(x cluster.Taint) bool { return x.Key == t.Key && x.Effect == t.Effect })
		out = append(out, t)
	}
	for _, t := range o.Spec.Template.Spec.Taints {
		if err := nodespec.Taint(cluster.Taint(t)); err != nil {
			d.warn("taint %s=%s:%s of the machine template is left out: %v", t.Key, t.Value, t.Effect, err)
			continue
		}
		set(cluster.Taint(t))
	}
	for _, item := range split(o.Annotations[keyTaints]) {
		t, err := nodespec.ParseTaint(item)
		if err != nil {
			d.warn("annotation %s: %q is left out: %v", keyTaints, item, err)
			continue
		}
		set(t)
	}
	return out
}
