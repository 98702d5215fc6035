// Package cluster holds the nouns of the house: node groups, instances, nodes,
// pod classes, pods and the Snapshot that carries one moment of all of them.
//
// Layer 0. It imports nothing but the standard library, holds values and
// arithmetic on values, and refuses to do I/O, to read a clock, to use chance or
// to decide anything. Kubernetes' own types are converted to these by
// agent/observe, once per object and version: k8s.io/api/core/v1 drags in 269
// packages (net/http among them), so a floor that spoke it could not be proven
// pure by a test.
package cluster

import "strings"

// GroupID names one node group. The provider gives it; for an Auto Scaling group
// it is the group's name.
type GroupID string

// InstanceID is an instance's provider ID exactly as a kubelet would write it to
// Node.spec.providerID, for example "aws:///eu-west-1a/i-0123456789abcdef0".
type InstanceID string

// Last is what follows the last slash: the ID by which the cloud's own calls name the instance.
func (id InstanceID) Last() string { return string(id[strings.LastIndexByte(string(id), '/')+1:]) }

// NodeName is metadata.name of a Node.
type NodeName string

// PodKey is "namespace/name" of a pod.
type PodKey string

// UID is metadata.uid of an object; deletions carry it as a precondition.
type UID string
