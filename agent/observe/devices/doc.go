// Package devices converts the objects of dynamic resource allocation (resource.k8s.io/v1): what the claims of a pod ask for,
// and what the ResourceSlices of a node offer and no claim has.
//
// An Index holds the objects; the demand of a pod changes with them, not with the pod. Selectors are CEL, evaluated by Kubernetes'
// own package (k8s.io/dynamic-resource-allocation/cel), once for each selector and device; what comes out are values:
// a device says which selectors select it. CEL costs 5.8 MB of the binary and 2.4 MB of memory at start; it is set up when the
// first claim is met.
//
// It refuses to guess. A request that may take a device which several nodes share, or which several claims may share,
// one that asks for capacity, and an unallocated claim that several pods name leave the pod not understood, with the
// reason. DeviceTaintRules are not read (they are off by default in 1.36): taints are those of the slices.
package devices
