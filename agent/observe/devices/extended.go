package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// extendedAsk is what one container asks of one extended resource.
type extendedAsk struct {
	resource  string
	container int  // of the init containers and those after them
	position  int  // of the resource among the container's requests, by name
	brief     bool // an init container that ends
	count     int64
}

// name is that of the request that kube-scheduler makes of it.
func (a *extendedAsk) name() string {
	return fmt.Sprintf("container-%d-request-%d", a.container, a.position)
}

// extendedAsks are what a pod's containers ask of extended resources.
func extendedAsks(spec *corev1.PodSpec) (out []extendedAsk) {
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		out = appendAsks(out, c, i, c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways)
	}
	for i := range spec.Containers {
		out = appendAsks(out, &spec.Containers[i], len(spec.InitContainers)+i, false)
	}
	return out
}

// appendAsks appends those of one container. Most containers ask for no extended resource, and each change of each pod comes here.
func appendAsks(out []extendedAsk, c *corev1.Container, i int, brief bool) []extendedAsk {
	any := false
	for name := range c.Resources.Requests {
		any = any || extended(name)
	}
	if !any {
		return out
	}
	for at, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
		q := c.Resources.Requests[name]
		if n, whole := q.AsInt64(); whole && n > 0 && extended(name) {
			out = append(out, extendedAsk{string(name), i, at, brief, n})
		}
	}
	return out
}

// extended tells a resource that is not Kubernetes' own.
func extended(name corev1.ResourceName) bool {
	text := string(name)
	return strings.HasPrefix(text, resourcev1.ResourceDeviceClassPrefix) || strings.Contains(text, "/") && !strings.Contains(text, corev1.ResourceDefaultNamespacePrefix)
}

// class is what is kept of a DeviceClass.
type class struct {
	selectors []string
	resource  string // that it backs
	created   time.Time
}

// backs is the class of an extended resource, of several the youngest; empty: none. By kube-scheduler 1.36 a node on which a device plug-in offers the
// resource is asked for that, and any other one for devices. Here the resource is devices where no node and no template has it, and the plug-in's else.
func (x *Index) backs(resource string) (name string) {
	if x.plugged[resource] {
		return ""
	}
	if implicit, is := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); is {
		if _, known := x.classes[implicit]; known {
			return implicit
		}
		return ""
	}
	for n, c := range x.classes {
		if c.resource == resource && (name == "" || cmp.Or(c.created.Compare(x.classes[name].created), strings.Compare(name, n)) > 0) {
			name = n
		}
	}
	return name
}

// SetPlugged tells of which resources that classes may back some node or template has any.
func (x *Index) SetPlugged(has func(resource string) bool) {
	for name, c := range x.classes {
		for _, resource := range []string{c.resource, resourcev1.ResourceDeviceClassPrefix + name} {
			if is := resource != "" && has(resource); is != x.plugged[resource] {
				x.plugged[resource], x.changed.all = is, true
			}
		}
	}
}

// extendedClaim is the claim that kube-scheduler makes of a pod's extended resources, as far as a class backs them, and what the pod asks of the others. A
// request of an init container that ends is met by those of the containers that come after it.
func (x *Index) extendedClaim(u *Use) (claim *resourcev1.DeviceClaim, left map[string]int64) {
	backing := map[string]string{}
	for _, a := range u.asks {
		if name := x.backs(a.resource); name != "" {
			backing[a.resource] = name
		}
	}
	if len(backing) == 0 {
		return nil, u.plain
	}
	left = maps.Clone(u.plain)
	claim = &resourcev1.DeviceClaim{}
	add := func(a *extendedAsk, count int64) {
		claim.Requests = append(claim.Requests, resourcev1.DeviceRequest{Name: a.name(), Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: backing[a.resource], AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}})
	}
	for resource := range backing {
		delete(left, resource)
		var most *extendedAsk
		var count int64
		for i := range u.asks {
			a := &u.asks[i]
			switch {
			case a.resource != resource:
			case !a.brief:
				add(a, a.count)
			default:
				need := a.count
				for _, later := range u.asks {
					if later.resource == resource && !later.brief && later.container > a.container {
						need -= later.count
					}
				}
				if need > count {
					most, count = a, need
				}
			}
		}
		if most != nil {
			add(most, count)
		}
	}
	slices.SortFunc(claim.Requests, func(a, b resourcev1.DeviceRequest) int { return strings.Compare(a.Name, b.Name) })
	return claim, left
}

// completeExtended puts the claim in the place of the resources that it is made of.
func (x *Index) completeExtended(u *Use, class *cluster.PodClass) (why string) {
	if len(u.asks) == 0 {
		return ""
	}
	claim, left := x.extendedClaim(u)
	class.Requests.Extended = left
	if claim == nil {
		return ""
	}
	asked, why := x.asks(claim)
	class.Claims = append(class.Claims, asked)
	return why
}
