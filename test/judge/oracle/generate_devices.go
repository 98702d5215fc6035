package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/devices"
)

// devicesOf gives nodes devices, some of which claims have, and most of the pods that wait claims: of their own, made from a template,
// allocated already, of a class that is not there. Nominated pods get none: kube-scheduler does not count the devices that they
// will have, and fit does.
func devicesOf(w *World, r *rand.Rand) {
	w.DeviceClasses = devices.Classes()
	extendClasses(w, r)
	number := 0
	allocated := func(node string, of ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
		number++
		c := devices.Claim(r, "prod", fmt.Sprint("allocated", number))
		c.UID = types.UID(c.Name)
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: of}, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		w.DeviceClaims = append(w.DeviceClaims, c)
		return c
	}
	var pinned []string
	for _, n := range w.Nodes {
		for i := range r.IntN(3) {
			of := devices.Pool(r, n.Name, fmt.Sprint(n.Name, "-", i), []string{"a.io", "b.io"}[r.IntN(2)])
			w.DeviceSlices = append(w.DeviceSlices, of...)
			for _, s := range of {
				for _, d := range s.Spec.Devices {
					if r.IntN(4) == 0 {
						c := allocated(n.Name, resourcev1.DeviceRequestAllocationResult{Request: "r0", Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: d.Name})
						pinned = append(pinned, c.Name)
					}
				}
			}
		}
	}
	for _, p := range w.Waiting {
		if p.Spec.NodeName != "" {
			continue
		}
		if r.IntN(4) == 0 {
			extendPod(p, r)
		}
		for i := range r.IntN(3) {
			name := fmt.Sprint(p.Name, "-claim", i)
			use := corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: &name}
			switch k := r.IntN(30); {
			case k > 27 && len(pinned) > 0 && p.Namespace == "prod":
				use.ResourceClaimName = &pinned[r.IntN(len(pinned))]
			case k == 1: // there is no such claim
			default:
				c := devices.Claim(r, p.Namespace, name)
				c.UID = types.UID(p.Namespace + name)
				if k == 2 {
					c.Spec.Devices.Requests[0].FirstAvailable, c.Spec.Devices.Requests[0].Exactly = nil, &resourcev1.ExactDeviceRequest{DeviceClassName: "gone", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
				}
				if k < 15 {
					template, controller := "t", true
					use.ResourceClaimName, use.ResourceClaimTemplateName = nil, &template
					p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: use.Name, ResourceClaimName: &name})
					c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &controller}}
				}
				w.DeviceClaims = append(w.DeviceClaims, c)
			}
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, use)
		}
	}
}

// extendClasses has DeviceClasses back extended resources, which in some worlds some nodes, or all, have of a device plug-in.
func extendClasses(w *World, r *rand.Rand) {
	for i, name := range []string{"a.io/gpu", "b.io/gpu", "", "b.io/gpu"} {
		if c := w.DeviceClasses[i]; name != "" && r.IntN(6) > 0 {
			c.Spec.ExtendedResourceName, c.CreationTimestamp = &name, metav1.Unix(int64(1e9+r.IntN(2)), 0)
		}
	}
	if some := r.IntN(5); some < 2 {
		for _, n := range w.Nodes {
			if some == 1 && r.IntN(2) == 0 {
				continue
			}
			n.Status.Allocatable["a.io/gpu"] = resource.MustParse(fmt.Sprint(1 + r.IntN(4)))
		}
	}
}

// extendPod has containers ask for extended resources.
func extendPod(p *corev1.Pod, r *rand.Rand) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			requests := corev1.ResourceList{}
			maps.Copy(requests, list[i].Resources.Requests)
			for range r.IntN(3) {
				name := []string{"a.io/gpu", "b.io/gpu", resourcev1.ResourceDeviceClassPrefix + "c2", "c.io/none"}[r.IntN(16)/5]
				requests[corev1.ResourceName(name)] = resource.MustParse(fmt.Sprint(r.IntN(4)))
			}
			list[i].Resources.Requests = requests
		}
	}
}
