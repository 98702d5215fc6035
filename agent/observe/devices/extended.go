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

// extended tells a resource that is not Kubernetes' own.
func extended(name string) bool {
	return strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) || strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
}

// extendedAsk is what one container asks of one extended resource.
type extendedAsk struct {
	resource  string
	name      string // of the request that kube-scheduler makes of it
	container int    // of the init containers and those after them
	brief     bool   // an init container that ends
	count     int64
}

// extendedAsks are those of a pod's containers. Most ask for no extended resource, and each change of each pod comes here.
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

func appendAsks(out []extendedAsk, c *corev1.Container, i int, brief bool) []extendedAsk {
	any := false
	for name := range c.Resources.Requests {
		any = any || extended(string(name))
	}
	if !any {
		return out
	}
	for at, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
		q := c.Resources.Requests[name]
		if n, whole := q.AsInt64(); whole && n > 0 && extended(string(name)) {
			out = append(out, extendedAsk{string(name), fmt.Sprintf("container-%d-request-%d", i, at), i, brief, n})
		}
	}
	return out
}

// devicesFor is how many devices kube-scheduler's claim asks for in the place of an ask. An init container that ends leaves its devices to the containers
// after it, so of all such containers only the one counts that needs most beyond these.
func (u *Use) devicesFor(a *extendedAsk) int64 {
	beyond := func(a *extendedAsk) (n int64) {
		n = a.count
		for _, later := range u.asks {
			if later.resource == a.resource && !later.brief && later.container > a.container {
				n -= later.count
			}
		}
		return n
	}
	if !a.brief {
		return a.count
	}
	n := beyond(a)
	for i := range u.asks {
		b := &u.asks[i]
		if b.resource == a.resource && b.brief && (beyond(b) > n || beyond(b) == n && b.container < a.container) {
			return 0
		}
	}
	return n
}

// class is what is kept of a DeviceClass.
type class struct {
	selectors []string
	resource  string // that it backs
	created   time.Time
}

// backs is the class of an extended resource, of several the youngest; empty: none.
func (x *Index) backs(resource string) (name string) {
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

// completeExtended adds the claim that kube-scheduler makes of a pod's extended resources, as far as a class backs them.
func (x *Index) completeExtended(u *Use, class *cluster.PodClass) (why string) {
	var claim cluster.DeviceClaim
	for i := range u.asks {
		a := &u.asks[i]
		of, n := x.backs(a.resource), u.devicesFor(a)
		if of == "" || n <= 0 {
			continue
		}
		one := cluster.DeviceAsk{Count: count(n)}
		if why := x.ask(&claim, &one, a.name, of, nil, nil); why != "" {
			return why
		}
		claim.Requests = append(claim.Requests, cluster.DeviceRequest{Name: a.name, Resource: a.resource, Alternatives: []cluster.DeviceAsk{one}})
	}
	if len(claim.Requests) > 0 {
		slices.SortFunc(claim.Requests, func(a, b cluster.DeviceRequest) int { return strings.Compare(a.Name, b.Name) })
		class.Claims = append(class.Claims, claim)
	}
	return ""
}
