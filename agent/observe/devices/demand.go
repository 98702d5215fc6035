package devices

import (
	"fmt"
	"math"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// mostSelectors bounds the selectors that are evaluated on every device: whoever makes pods may write any.
const mostSelectors = 500

// Complete sets the claims of a pod's class to what they ask for now.
func (x *Index) Complete(key cluster.PodKey, class *cluster.PodClass) {
	if u, has := x.pods[key]; has {
		x.complete(key, &u, class)
	}
}

// CompletePiece sets the claims of a piece of headroom to what they ask for now. No pod has them.
func (x *Index) CompletePiece(h *cluster.Headroom) {
	u := Use{}
	for name, n := range h.Piece.Requests.Extended {
		if n > 0 && extended(name) {
			u.asks = append(u.asks, extendedAsk{resource: name, name: name, count: n})
		}
	}
	x.claimed, x.asked = x.claimed || len(h.Templates) > 0, x.asked || len(u.asks) > 0
	for _, name := range h.Templates {
		u.claims = append(u.claims, claimUse{template: name})
	}
	x.complete("", &u, &h.Piece)
	for _, c := range h.Piece.Claims {
		for _, r := range c.Requests {
			for _, a := range r.Alternatives {
				for _, s := range a.Selectors {
					x.lasting[s] = true
				}
			}
		}
	}
}

func (x *Index) complete(key cluster.PodKey, u *Use, class *cluster.PodClass) {
	class.Claims = nil
	class.NotUnderstood = slices.DeleteFunc(slices.Clone(class.NotUnderstood), func(s string) bool { return strings.HasPrefix(s, convert.ResourceClaims) })
	why := ""
	switch {
	case x.Read():
		why = x.completeClaims(key, u, class)
	case len(u.claims) > 0:
		why = "the objects of resource.k8s.io/v1 are " + x.unread
	}
	if why != "" {
		class.NotUnderstood, class.Claims = append(class.NotUnderstood, convert.ResourceClaims+": "+why), nil
	}
}

// completeClaims are those that the pod names, and the one of its extended resources.
func (x *Index) completeClaims(key cluster.PodKey, u *Use, class *cluster.PodClass) (why string) {
	for _, c := range u.claims {
		claim, why := x.demand(key, u, c)
		if why != "" {
			return why
		}
		class.Claims = append(class.Claims, claim)
	}
	return x.completeExtended(u, class)
}

// demand is what one claim of a pod asks for; why it is not judged; empty: it is. A bound pod's is what the pod that is made after it
// will ask for.
func (x *Index) demand(key cluster.PodKey, u *Use, use claimUse) (out cluster.DeviceClaim, why string) {
	c, made := x.claims[use.claim]
	_, name, _ := strings.Cut(use.claim, "/")
	switch {
	case !made && use.template == "":
		out.Refused = fmt.Sprintf("could not find ResourceClaim %q", use.claim)
		return out, ""
	case !made:
		t, known := x.templates[use.template]
		if !known {
			out.Refused = fmt.Sprintf("could not find ResourceClaimTemplate %q", use.template)
			return out, ""
		}
		return x.asks(t)
	case c.deleting && u.node == "":
		out.Refused = fmt.Sprintf("resourceclaim %q is being deleted", name)
		return out, ""
	case c.on != nil && (u.node == "" || use.template == "" && c.consumers > 1):
		return cluster.DeviceClaim{On: c.on}, ""
	case use.template == "" && len(x.users[reference{key: use.claim}]) > 1:
		if first := slices.Min(x.users[reference{key: use.claim}]); first != key { // kube-scheduler gives it to the pod that it tries first
			return out, fmt.Sprintf("claim %s, which several pods share, is not allocated yet: a machine is looked for with pod %s, and then this pod's place is where that one's is", name, first)
		}
	}
	return x.asks(c.spec)
}

// asks converts the requests and constraints of a claim.
func (x *Index) asks(spec *resourcev1.DeviceClaim) (out cluster.DeviceClaim, why string) {
	for i := range spec.Requests {
		r := &spec.Requests[i]
		to := cluster.DeviceRequest{Name: r.Name}
		if e := r.Exactly; e != nil {
			to.Alternatives = []cluster.DeviceAsk{{Count: count(e.Count), All: e.AllocationMode == resourcev1.DeviceAllocationModeAll, Admin: e.AdminAccess != nil && *e.AdminAccess, Tolerations: tolerations(e.Tolerations)}}
			why = x.ask(&out, &to.Alternatives[0], r.Name, e.DeviceClassName, e.Selectors, e.Capacity)
		}
		for k := range r.FirstAvailable {
			s := &r.FirstAvailable[k]
			ask := cluster.DeviceAsk{Name: s.Name, Count: count(s.Count), All: s.AllocationMode == resourcev1.DeviceAllocationModeAll, Tolerations: tolerations(s.Tolerations)}
			if w := x.ask(&out, &ask, r.Name+"/"+s.Name, s.DeviceClassName, s.Selectors, s.Capacity); why == "" {
				why = w
			}
			to.Alternatives = append(to.Alternatives, ask)
		}
		if why != "" {
			return out, why
		}
		out.Requests = append(out.Requests, to)
	}
	for _, c := range spec.Constraints {
		to := cluster.DeviceConstraint{Requests: c.Requests}
		switch {
		case c.MatchAttribute != nil:
			to.Attribute = string(*c.MatchAttribute)
		case c.DistinctAttribute != nil:
			to.Attribute, to.Distinct = string(*c.DistinctAttribute), true
		default:
			return out, "a constraint that is neither matchAttribute nor distinctAttribute"
		}
		out.Constraints = append(out.Constraints, to)
	}
	return out, ""
}

// ask completes one alternative with its selectors.
func (x *Index) ask(claim *cluster.DeviceClaim, to *cluster.DeviceAsk, name, class string, own []resourcev1.DeviceSelector, capacity *resourcev1.CapacityRequirements) (why string) {
	if to.All {
		to.Count = 0
	}
	of, known := x.classes[class]
	if !known {
		claim.Refused = fmt.Sprintf("request %s: device class %s does not exist", name, class)
	}
	if capacity != nil && len(capacity.Requests) > 0 {
		return fmt.Sprintf("request %s asks for capacity", name)
	}
	to.Selectors = slices.Concat(of.selectors, expressions(own))
	for _, s := range to.Selectors {
		if x.selectors[s] {
			continue
		}
		if len(x.selectors) >= mostSelectors {
			return fmt.Sprintf("there are more than %d different selectors", mostSelectors)
		}
		x.selectors[s], x.changed.templates = true, true
		for node := range x.onNode { // their devices say nothing of it yet
			x.changed.nodes[node] = true
		}
	}
	if shared := x.notJudged(to.Selectors); shared != "" {
		return fmt.Sprintf("request %s may take %s", name, shared)
	}
	return ""
}

func count(n int64) int { return int(min(n, math.MaxInt32)) }

func tolerations(list []resourcev1.DeviceToleration) (out []cluster.Toleration) {
	for _, t := range list {
		out = append(out, cluster.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}
