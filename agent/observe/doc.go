// Package observe takes a cluster.Snapshot: the Kubernetes objects as the API server's
// watches report them, and the node groups as the inventory last read them.
//
//	informers ─▶ store (convert, volumes) ─┐
//	                                        ├─▶ Observer.Snapshot ─▶ cluster.Snapshot
//	provider ──▶ agent/inventory ─ template ┘
//
// Pods have no informer: a Reflector writes them to the store, which holds each once, as the
// few values that decisions read (podWatch).
//
// New starts from an informer factory and an inventory. Start, WaitForSync and then
// Snapshot give one value per round. WakeUps tells when a round is due, and Stale tells
// why the facts of Kubernetes may be old.
//
// Packages below this one: convert turns one API object into a value, volumes judges
// what a pod's claims demand of its node, store holds the values between two watch
// events, template corrects a group's template by what its nodes report. Package
// priorities is a watch of its own, for the priority expander's ConfigMap.
//
// The package refuses to write to Kubernetes or to the cloud, to decide anything, and to
// poll the API server. A Snapshot never waits for the cloud.
package observe
