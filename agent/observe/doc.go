// Package observe sees: it turns the Kubernetes API's watches and the cloud's
// inventory into cluster.Snapshot, one value per round.
//
// Each object is converted once per version, in its watch event; a Snapshot copies
// what changed since the last one and shares nothing with an informer. The cloud
// is read at an adaptive pace by one Inventory that every service shares.
//
// It refuses to write to either of them, to decide anything, to poll the API
// server, and to forget: a group whose read failed keeps its last good facts,
// marked stale.
//
// What a pod demands of other pods, of namespaces and of volumes becomes part of its
// class, in kube-scheduler's own reading; a pod's class follows when its claims change.
// What fit does not judge (resourceClaims, a disk named in the pod itself, another
// scheduler) is listed by name in NotUnderstood.
package observe
