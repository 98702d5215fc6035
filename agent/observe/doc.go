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
// What existing pods demand of newcomers (required podAntiAffinity of a running
// pod that selects the newcomer) is not judged by fit in this build; a pod class
// that such a term selects carries it in NotUnderstood, and is held by name.
package observe
