package upgrade

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// Follower decides about user data for the cluster as it is at the time of the question, and remembers its decisions:
// providers ask at every read. A nil Follower decides nothing. It is safe for concurrent use.
type Follower struct {
	cluster func() Cluster

	mu    sync.Mutex
	known map[[sha256.Size]byte]Outcome
}

// mostKnown bounds what is remembered: user data of some tens of kilobytes each.
const mostKnown = 64

// NewFollower returns a Follower of a cluster.
func NewFollower(cluster func() Cluster) *Follower { return &Follower{cluster: cluster} }

// Of decides about user data.
func (f *Follower) Of(text []byte) Outcome {
	if f == nil {
		return Outcome{}
	}
	c := f.cluster()
	key := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %s", c.Mode, c.Server, c.Leaders, text))
	f.mu.Lock()
	defer f.mu.Unlock()
	if out, ok := f.known[key]; ok {
		return out
	}
	if len(f.known) >= mostKnown || f.known == nil {
		f.known = map[[sha256.Size]byte]Outcome{}
	}
	out := c.Of(text)
	f.known[key] = out
	return out
}

// Follows tells that the workers follow the API server's version, and whether that is known yet.
func (f *Follower) Follows() (follows, known bool) {
	if f == nil {
		return false, false
	}
	c := f.cluster()
	return c.follows(), c.Server != ""
}

// Server is the API server's version; empty: not known.
func (f *Follower) Server() string {
	if f == nil {
		return ""
	}
	return f.cluster().Server
}
