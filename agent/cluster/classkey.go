package cluster

import (
	"maps"
	"slices"
	"strconv"
)

// The keys of pod classes. Every index of classes by content builds its key from the parts
// here, and they differ in the parts they take: the store takes all (AppendClass), the
// engine's filter results what the node filters read (AppendNodeDemands), and the constraint
// classes of fit and of topology what the inter-pod filters read (AppendLabels and
// AppendPodDemands). A key is injective: every string carries its length and every list its
// count. Keys are compared and never stored.

// AppendClass appends the whole of a class.
func AppendClass(b []byte, c *PodClass) []byte {
	b = AppendLabels(AppendString(b, c.Namespace), c.Labels)
	b = appendResources(b, c.Requests)
	b = appendInt(b, int64(len(c.HostPorts)))
	for _, h := range c.HostPorts {
		b = appendInt(AppendString(AppendString(b, h.IP), h.Protocol), int64(h.Port))
	}
	b = appendInt(appendBool(AppendNodeDemands(b, c), c.TooLarge), int64(c.Priority))
	b = AppendClaims(AppendStrings(b, c.NotUnderstood), c.Claims)
	return appendPreferences(appendRelations(b, c), c.Prefers)
}

// appendPreferences appends what only scores read. Most classes have none of it.
func appendPreferences(b []byte, p *Preferences) []byte {
	if p == nil {
		return append(b, '-')
	}
	b = appendInt(appendInt(append(b, '+'), p.MilliCPU), p.Memory)
	b = appendInt(appendInt(b, p.IncomingMilliCPU), p.IncomingMemory)
	b = appendInt(b, int64(len(p.Nodes)))
	for i := range p.Nodes {
		b = AppendNodeTerms(appendInt(b, p.Nodes[i].Weight), []NodeTerm{p.Nodes[i].Term})
	}
	b = appendInt(b, int64(len(p.Pods)))
	for i := range p.Pods {
		b = appendPodTerms(appendInt(b, p.Pods[i].Weight), []PodTerm{p.Pods[i].Term})
	}
	return appendSpread(b, p.Spread)
}

// AppendNodeDemands appends what a class demands of the labels, the taints and the name of
// its node.
func AppendNodeDemands(b []byte, c *PodClass) []byte {
	b = AppendNodeTerms(AppendLabels(b, c.NodeSelector), c.Affinity)
	return AppendString(AppendTolerations(b, c.Tolerations), string(c.NodeName))
}

// AppendTolerations appends tolerations.
func AppendTolerations(b []byte, list []Toleration) []byte {
	b = appendInt(b, int64(len(list)))
	for _, t := range list {
		b = AppendString(AppendString(AppendString(AppendString(b, t.Key), t.Operator), t.Value), t.Effect)
	}
	return b
}

// AppendPodDemands appends the terms of a class that select other pods.
func AppendPodDemands(b []byte, c *PodClass) []byte {
	b = appendPodTerms(appendPodTerms(b, c.PodAffinity), c.PodAntiAffinity)
	return appendSpread(b, c.Spread)
}

func appendSpread(b []byte, spread []Spread) []byte {
	b = appendInt(b, int64(len(spread)))
	for i := range spread {
		s := &spread[i]
		b = appendInt(appendInt(AppendString(b, s.TopologyKey), int64(s.MaxSkew)), int64(s.MinDomains))
		b = AppendSelector(b, s.Selector)
		b = appendBool(appendBool(b, s.IgnoreNodeAffinity), s.HonorTaints)
	}
	return b
}

func appendRequirements(b []byte, in []Requirement) []byte {
	b = appendInt(b, int64(len(in)))
	for _, r := range in {
		b = AppendStrings(AppendString(AppendString(b, r.Key), r.Operator), r.Values)
	}
	return b
}

func appendResources(b []byte, r Resources) []byte {
	for _, v := range []int64{r.MilliCPU, r.Memory, r.EphemeralStorage, r.Pods, int64(len(r.Extended))} {
		b = appendInt(b, v)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Extended)) {
		b = appendInt(AppendString(b, k), r.Extended[k])
	}
	return b
}

// AppendLabels appends labels, in the order of their keys.
func AppendLabels(b []byte, labels map[string]string) []byte {
	b = appendInt(b, int64(len(labels)))
	if len(labels) == 0 {
		return b
	}
	keys := make([]string, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = AppendString(AppendString(b, k), labels[k])
	}
	return b
}

// AppendStrings appends a list of strings.
func AppendStrings(b []byte, list []string) []byte {
	b = appendInt(b, int64(len(list)))
	for _, s := range list {
		b = AppendString(b, s)
	}
	return b
}

// AppendString appends a string.
func AppendString(b []byte, s string) []byte { return append(appendInt(b, int64(len(s))), s...) }

func appendInt(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 36), ' ') }

// appendRelations appends the part of a class's key that concerns other pods and
// volumes. Most classes have none of it and pay one byte.
func appendRelations(b []byte, p *PodClass) []byte {
	if len(p.PodAffinity)+len(p.PodAntiAffinity)+len(p.Spread)+len(p.Volumes) == 0 {
		return append(b, '-')
	}
	b = AppendPodDemands(append(b, '+'), p)
	b = appendInt(b, int64(len(p.Volumes)))
	for i := range p.Volumes {
		v := &p.Volumes[i]
		b = AppendNodeTerms(AppendString(b, v.Claim), v.Affinity)
		b = AppendNodeTerms(appendRequirements(b, v.Zones), v.Topologies)
		b = AppendString(AppendString(b, v.Driver), v.Handle)
		b = AppendString(appendBool(b, v.OnePod), v.Refused)
	}
	return b
}

func appendPodTerms(b []byte, terms []PodTerm) []byte {
	b = appendInt(b, int64(len(terms)))
	for i := range terms {
		t := &terms[i]
		b = AppendSelector(AppendString(b, t.TopologyKey), t.Selector)
		b = AppendSelector(AppendStrings(b, t.Namespaces), t.NamespaceSelector)
	}
	return b
}

// AppendSelector appends a label selector; nil and an empty one differ.
func AppendSelector(b []byte, s *Selector) []byte {
	if s == nil {
		return append(b, '!') // no number starts so
	}
	return appendRequirements(b, s.Requirements)
}

// AppendNodeTerms appends node selector terms; nil and an empty list differ.
func AppendNodeTerms(b []byte, terms []NodeTerm) []byte {
	if terms == nil {
		b = append(b, '!') // no number starts so
	}
	b = appendInt(b, int64(len(terms)))
	for i := range terms {
		b = appendRequirements(appendRequirements(b, terms[i].Labels), terms[i].Fields)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, '1')
	}
	return append(b, '0')
}
