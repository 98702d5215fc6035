package devices

import (
	"cmp"
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

// asksExtended tells whether a pod asks for extended resources. Most do not, and each change of each pod comes here.
func asksExtended(of map[string]int64) bool {
	for name, n := range of {
		if n > 0 && extended(name) {
			return true
		}
	}
	return false
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

// completeExtended adds the claim that kube-scheduler makes of a pod's extended resources, as far as a class backs them. It has a request for each
// container; here one asks for all devices of a resource: what an init container that ends asks for is met by what comes after it, as in the pod's sum.
func (x *Index) completeExtended(class *cluster.PodClass) (why string) {
	var claim cluster.DeviceClaim
	for _, resource := range slices.Sorted(maps.Keys(class.Requests.Extended)) {
		n, of := class.Requests.Extended[resource], ""
		if n > 0 && extended(resource) {
			of = x.backs(resource)
		}
		if of == "" {
			continue
		}
		one := cluster.DeviceAsk{Count: count(n)}
		if why := x.ask(&claim, &one, resource, of, nil, nil); why != "" {
			return why
		}
		claim.Requests = append(claim.Requests, cluster.DeviceRequest{Name: resource, Resource: resource, Alternatives: []cluster.DeviceAsk{one}})
	}
	if len(claim.Requests) > 0 {
		class.Claims = append(class.Claims, claim)
	}
	return ""
}
