// Package apiserver is a Kubernetes API server in memory: the kinds that the agent uses and a
// simulated cluster needs, over HTTP, without a listener. It reads the clock of the bubble that it
// runs in.
//
// It has lists (with limit and continue, from one resource version), watches (initial events,
// bookmarks, an end by timeout, expiry with 410), optimistic conflicts, preconditions of deletions,
// graceful deletion of pods, finalizers, merge, strategic and JSON patches, the subresources
// status, approval, binding and eviction with PodDisruptionBudgets, dry runs, access reviews, bearer
// tokens and bootstrap tokens, JSON and protobuf.
//
// It refuses what it does not know with 404 or 400, never by ignoring it. It has no admission, no defaulting and no
// validation beyond names and resource versions: who plays on it sends objects as the real one would
// have stored them. Field selectors are those of table.go. It has no watch cache that lags behind: faults are the transport's.
package apiserver
