package store

import (
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// appendClass writes an injective encoding of p: every string carries its length
// and every list its count.
func appendClass(b []byte, p *cluster.PodClass) []byte {
	b = appendString(b, p.Namespace)
	b = appendMap(b, p.Labels)
	b = appendResources(b, p.Requests)
	b = appendInt(b, int64(len(p.HostPorts)))
	for _, h := range p.HostPorts {
		b = appendInt(appendString(appendString(b, h.IP), h.Protocol), int64(h.Port))
	}
	b = appendMap(b, p.NodeSelector)
	b = appendNodeTerms(b, p.Affinity)
	b = appendInt(b, int64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		b = appendString(appendString(appendString(appendString(b, t.Key), t.Operator), t.Value), t.Effect)
	}
	b = appendInt(b, int64(p.Priority))
	b = appendString(b, string(p.NodeName))
	return appendRelations(appendStrings(b, p.NotUnderstood), p)
}

func appendRequirements(b []byte, in []cluster.Requirement) []byte {
	b = appendInt(b, int64(len(in)))
	for _, r := range in {
		b = appendStrings(appendString(appendString(b, r.Key), r.Operator), r.Values)
	}
	return b
}

func appendResources(b []byte, r cluster.Resources) []byte {
	for _, v := range []int64{r.MilliCPU, r.Memory, r.EphemeralStorage, r.Pods, int64(len(r.Extended))} {
		b = appendInt(b, v)
	}
	for _, k := range sortedKeys(r.Extended) {
		b = appendInt(appendString(b, k), r.Extended[k])
	}
	return b
}

func appendMap(b []byte, m map[string]string) []byte {
	b = appendInt(b, int64(len(m)))
	for _, k := range sortedKeys(m) {
		b = appendString(appendString(b, k), m[k])
	}
	return b
}

func appendStrings(b []byte, list []string) []byte {
	b = appendInt(b, int64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendString(b []byte, s string) []byte { return append(appendInt(b, int64(len(s))), s...) }

func appendInt(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 36), ' ') }

// appendRelations appends the part of a class's key that concerns other pods and
// volumes. Most classes have none of it and pay one byte.
func appendRelations(b []byte, p *cluster.PodClass) []byte {
	if len(p.PodAffinity)+len(p.PodAntiAffinity)+len(p.Spread)+len(p.Volumes) == 0 {
		return append(b, '-')
	}
	b = append(b, '+')
	b = appendPodTerms(appendPodTerms(b, p.PodAffinity), p.PodAntiAffinity)
	b = appendInt(b, int64(len(p.Spread)))
	for i := range p.Spread {
		s := &p.Spread[i]
		b = appendInt(appendInt(appendString(b, s.TopologyKey), int64(s.MaxSkew)), int64(s.MinDomains))
		b = appendSelector(b, s.Selector)
		b = appendBool(appendBool(b, s.IgnoreNodeAffinity), s.HonorTaints)
	}
	b = appendInt(b, int64(len(p.Volumes)))
	for i := range p.Volumes {
		v := &p.Volumes[i]
		b = appendNodeTerms(appendString(b, v.Claim), v.Affinity)
		b = appendNodeTerms(appendRequirements(b, v.Zones), v.Topologies)
		b = appendString(appendString(b, v.Driver), v.Handle)
		b = appendString(appendBool(b, v.OnePod), v.Refused)
	}
	return b
}

func appendPodTerms(b []byte, terms []cluster.PodTerm) []byte {
	b = appendInt(b, int64(len(terms)))
	for i := range terms {
		t := &terms[i]
		b = appendSelector(appendString(b, t.TopologyKey), t.Selector)
		b = appendSelector(appendStrings(b, t.Namespaces), t.NamespaceSelector)
	}
	return b
}

func appendSelector(b []byte, s *cluster.Selector) []byte {
	if s == nil {
		return append(b, '!') // no number starts so
	}
	return appendRequirements(b, s.Requirements)
}

func appendNodeTerms(b []byte, terms []cluster.NodeTerm) []byte {
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
