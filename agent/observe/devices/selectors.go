package devices

import (
	"context"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// verdict is what a selector says of a device.
type verdict int8

const (
	refuses verdict = iota
	selects
	fails // it cannot be evaluated there; kube-scheduler gives up on the node
)

// compiled bounds the selectors of which the programs are kept.
const compiled = 200

// verdict evaluates a selector on a device once.
func (x *Index) verdict(selector string, d *device) verdict {
	if v, known := d.judged[selector]; known {
		return v
	}
	if x.programs == nil {
		x.programs = cel.NewCache(compiled, cel.Features{EnableConsumableCapacity: true})
	}
	v := fails
	if program := x.programs.GetOrCompile(selector); program.Error == nil {
		matches, _, err := program.DeviceMatches(context.Background(), cel.Device{Driver: d.Driver, AllowMultipleAllocations: d.raw.AllowMultipleAllocations, Attributes: d.raw.Attributes, Capacity: d.raw.Capacity})
		switch {
		case err == nil && matches:
			v = selects
		case err == nil:
			v = refuses
		}
	}
	d.judged[selector] = v
	return v
}

// judge lists the selectors that select a device, and those that cannot be evaluated on it.
func (x *Index) judge(d *device) (matches, fail []string) {
	for _, s := range slices.Sorted(maps.Keys(x.selectors)) {
		switch x.verdict(s, d) {
		case selects:
			matches = append(matches, s)
		case fails:
			fail = append(fail, s)
		}
	}
	return matches, fail
}

// notJudged says which devices that are not judged a request may be for; empty: none.
func (x *Index) notJudged(selectors []string) string {
	if x.stale {
		x.stale, x.unjudged = false, nil
		for _, name := range slices.Sorted(maps.Keys(x.slices)) {
			for _, d := range x.slices[name].devices {
				if d.why != "" {
					x.unjudged = append(x.unjudged, d)
				}
			}
		}
	}
	for _, d := range x.unjudged {
		if !slices.ContainsFunc(selectors, func(s string) bool { return x.verdict(s, d) != selects }) {
			return d.why
		}
	}
	return ""
}

// expressions are the selectors of an object; one that is no CEL expression can nowhere be evaluated.
func expressions(list []resourcev1.DeviceSelector) (out []string) {
	for _, s := range list {
		if s.CEL == nil {
			out = append(out, "")
			continue
		}
		out = append(out, s.CEL.Expression)
	}
	return out
}
